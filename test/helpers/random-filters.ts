import type { CloudEvent } from '../../service/events/cloud-event';
import type { Filter } from '../../service/events/select-events';
import type { SeededRandom } from './seeded-random';

/** Few values, so that random filters often match random events. */
const ADDRESSES = ['0xaa', '0xab', '0xba'].map((start) => start.padEnd(42, '0'));
const TOKENS = [0n, 1n, 10n, 2n ** 255n];
const TYPES = ['com.service.etr.minted', 'com.service.etr.shred', 'com.service.etr.registry_paused'] as const;
const SOURCES = ADDRESSES.map((address) => `urn:service:1:${address}`);
const ATTRIBUTES = [
  'id',
  'source',
  'type',
  'subject',
  'time',
  'specversion',
  'datacontenttype',
  'data',
  'toString',
];

/** An event with values of few kinds. The payload need not be one of its type. */
export function randomEvent(random: SeededRandom): CloudEvent {
  const registryAddress = random.pick(ADDRESSES);
  const type = random.pick(TYPES);
  const token = type === 'com.service.etr.registry_paused' ? undefined : random.pick(TOKENS);
  return {
    specversion: '1.0',
    id: random.hex(2),
    source: `urn:service:1:${registryAddress}`,
    type,
    datacontenttype: 'application/json',
    time: new Date(random.below(1e12)).toISOString(),
    subject: String(token ?? 0),
    data: {
      chainKey: 'mainnet',
      chainId: 1,
      registryAddress,
      tokenId: String(token ?? 0),
      ...(token !== undefined && { tokenIdHex: token.toString(16).padStart(64, '0') }),
      blockNumber: random.below(100),
      transactionHash: random.hex(32),
      logIndex: random.below(3),
      payload: { holder: random.pick(ADDRESSES), isMinting: random.chance(0.5) },
    },
  };
}

/** `source` and `types` of a subscription, each often absent. */
export function randomSelection(random: SeededRandom): { source?: string; types?: string[] } {
  return {
    ...(random.chance(0.3) && { source: random.pick(SOURCES) }),
    ...(random.chance(0.3) && { types: TYPES.filter(() => random.chance(0.5)) }),
  };
}

/** A filter of any dialect, at most `depth` filters deep. */
export function randomFilter(random: SeededRandom, depth: number): Filter {
  const dialect = random.pick([
    'exact',
    'prefix',
    'suffix',
    'tokens',
    'parties',
    'all',
    'any',
    'not',
  ] as const);
  const filters = (): Filter[] => some(random, () => randomFilter(random, depth - 1));
  switch (depth > 1 ? dialect : random.pick(['exact', 'prefix', 'suffix', 'tokens', 'parties'] as const)) {
    case 'all':
      return { all: filters() };
    case 'any':
      return { any: filters() };
    case 'not':
      return { not: randomFilter(random, depth - 1) };
    case 'tokens':
      return { tokens: some(random, () => spelled(random, random.pick(TOKENS))) };
    case 'parties':
      return { parties: some(random, () => random.pick(ADDRESSES)) };
    case 'exact':
      return { exact: attributes(random, (text) => text) };
    case 'prefix':
      return { prefix: attributes(random, (text) => text.slice(0, 1 + random.below(text.length))) };
    case 'suffix':
      return { suffix: attributes(random, (text) => text.slice(random.below(text.length))) };
  }
}

/** One to three. */
function some<T>(random: SeededRandom, make: () => T): T[] {
  return Array.from({ length: 1 + random.below(3) }, make);
}

/** Parts of values that events have. */
function attributes(random: SeededRandom, part: (text: string) => string): Record<string, string> {
  const event = randomEvent(random);
  const entries = some(random, () => {
    const name = random.pick(ATTRIBUTES);
    const value = (event as unknown as Record<string, unknown>)[name];
    return [name, part(typeof value === 'string' ? value : 'something')];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}

/** A token id in each of its forms. */
function spelled(random: SeededRandom, token: bigint): string {
  const digits = token.toString(16).padStart(64, '0');
  return random.pick([token.toString(), digits, `0x${digits}`, `0x${digits.toUpperCase()}`]);
}
