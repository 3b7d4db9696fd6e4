import { getAddress } from 'ethers';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { SeededRandom } from '../seeded-random';

// The events of the model, and the oracle: which of them a scope shows. It shares no code with the service.

/** The second has the address of the first, on another chain. */
export const REGISTRIES = [
  { chainKey: 'hardhat', chainId: 31337, registryAddress: `0x${'1a'.repeat(20)}` },
  { chainKey: 'local', chainId: 1337, registryAddress: `0x${'1a'.repeat(20)}` },
  { chainKey: 'hardhat', chainId: 31337, registryAddress: `0x${'2b'.repeat(20)}` },
] as const;
export type Registry = (typeof REGISTRIES)[number];

/** Token 0 has the subject of the registry's events; one has 64 decimal digits. */
const TOKENS = [0n, 7n, 10n ** 63n + 7n, 2n ** 255n + 5n, 8n, 9n];
/** The last ones are rare. */
const PARTIES = ['0a', '0b', 'c0', 'd0', 'e0', 'f0'].map((byte) => `0x${byte.repeat(20)}`);
const TYPES = ['minted', 'holder_transfer', 'beneficiary_transfer', 'nomination', 'shred'] as const;

export interface ModelScope {
  registries?: string[];
  tokens?: string[];
  parties?: string[];
}

/** Selects events besides the scope. `isPlain`: by the members of a request. */
export interface ModelRule {
  members: object;
  selects(event: RegistryEvent): boolean;
}

export const sourceOf = ({ chainId, registryAddress }: Registry): string =>
  `urn:service:${chainId}:${registryAddress}`;

export function hexOf(tokenId: bigint): string {
  return tokenId.toString(16).padStart(64, '0');
}

/** Parties that are near each other in a list meet often: some see much, some nothing. */
export function drawEvent(random: SeededRandom, number: number): Partial<RegistryEvent> {
  const party = (): string => PARTIES[Math.min(random.below(4), random.below(8))] ?? '';
  // A remark is no address, even if it looks like one.
  const remark = random.chance(0.3) ? party() : `0x${number.toString(16).padStart(8, '0')}`;
  if (random.chance(0.1))
    return { type: 'registry_paused', tokenId: undefined, payload: { account: party(), remark } };
  const type = random.pick(TYPES);
  const payloads = {
    minted: { tokenId: '', owner: party(), holder: party(), escrowAddress: random.hex(20), remark },
    holder_transfer: { fromHolder: party(), toHolder: party(), remark },
    beneficiary_transfer: { fromBeneficiary: party(), toBeneficiary: party(), remark },
    nomination: { prevNominee: `0x${'00'.repeat(20)}`, nominee: party(), remark },
    shred: { remark },
  };
  return { type, tokenId: random.pick(TOKENS), payload: payloads[type] };
}

/** A scope as the oracle reads it, in a form of requests, and as the log-in of a wallet has it. */
export type DrawnScope = Record<'scope' | 'written' | 'ofWallet', ModelScope>;

export function drawScope(random: SeededRandom): DrawnScope {
  const some = <T>(list: readonly T[]): T[] => {
    const chosen = list.filter(() => random.chance(0.3));
    return chosen.length > 0 ? chosen : [random.pick(list)];
  };
  const kinds = random.pick(['r', 't', 'p', 'p', 'rp', 'tp', 'rt', 'rtp']);
  const registries = kinds.includes('r') ? some(REGISTRIES) : [];
  const tokens = (kinds.includes('t') ? some(REGISTRIES) : []).flatMap((registry) =>
    some(TOKENS).map((tokenId) => ({ registry, tokenId })),
  );
  const parties = (kinds.includes('p') ? some(PARTIES) : []).map((address) => ({
    address,
    chainId: random.pick([31337, 31337, 1337]),
  }));
  const form = (address: string): string =>
    random.pick([address, getAddress(address), `0x${address.slice(2).toUpperCase()}`]);
  const formOf = (tokenId: bigint): string => {
    const hex = hexOf(tokenId);
    const isAmbiguous = String(tokenId).length === 64;
    return random.pick([hex, `0x${hex.toUpperCase()}`, isAmbiguous ? hex : String(tokenId)]);
  };
  const build = (address: (text: string) => string, id: (tokenId: bigint) => string): ModelScope => ({
    ...(registries.length > 0 && {
      registries: registries.map((one) => `urn:service:${one.chainId}:${address(one.registryAddress)}`),
    }),
    ...(tokens.length > 0 && {
      tokens: tokens.map(
        ({ registry, tokenId }) =>
          `urn:service:${registry.chainId}:${address(registry.registryAddress)}/${id(tokenId)}`,
      ),
    }),
    ...(parties.length > 0 && {
      parties: parties.map((one) => `eip155:${one.chainId}:${address(one.address)}`),
    }),
  });
  return {
    scope: build((text) => text, String),
    written: build(form, formOf),
    ofWallet: build((text) => text, hexOf),
  };
}

export function drawRule(random: SeededRandom): ModelRule {
  const parties = [random.pick(PARTIES), random.pick(PARTIES)];
  const tokens = [random.pick(TOKENS), random.pick(TOKENS)];
  const [first = 0n] = tokens;
  const rules: ModelRule[] = [
    { members: {}, selects: () => true },
    { members: { filters: [{ not: { parties } }] }, selects: (event) => !names(event, parties) },
    {
      members: { filters: [{ any: [{ parties }, { suffix: { type: '.shred' } }] }] },
      selects: (event) => names(event, parties) || event.type === 'shred',
    },
    {
      members: { filters: [{ not: { tokens: [hexOf(first)] } }] },
      selects: ({ tokenId }) => tokenId !== first,
    },
    {
      members: { types: ['com.service.etr.minted', 'com.service.etr.nomination'] },
      selects: ({ type }) => type === 'minted' || type === 'nomination',
    },
  ];
  return random.pick(rules);
}

function names({ payload }: RegistryEvent, parties: readonly string[]): boolean {
  return Object.entries(payload).some(
    ([name, value]) => name !== 'remark' && parties.some((party) => party === value),
  );
}

/** The oracle. */
export function sees(scope: ModelScope, registry: Registry, event: RegistryEvent): boolean {
  const source = sourceOf(registry);
  if (scope.registries && !scope.registries.includes(source)) return false;
  if (scope.tokens && (event.tokenId === undefined || !scope.tokens.includes(`${source}/${event.tokenId}`)))
    return false;
  const of = (scope.parties ?? []).filter((party) => party.startsWith(`eip155:${registry.chainId}:`));
  return (
    scope.parties === undefined ||
    names(
      event,
      of.map((party) => party.split(':')[2] ?? ''),
    )
  );
}
