import { decodeRlp, encodeRlp, keccak256, sha256, toUtf8Bytes } from 'ethers';
import { collect, type EvidenceFile, type EvidenceOptions } from '../../evidence/evidence';
import { seededRandom, type SeededRandom } from './seeded-random';

/** Collects the evidence of a token from the node of a setup, as `tdoc evidence` does. */
export async function collected(
  { node, registryAddress: registry }: { node: { url: string }; registryAddress: string },
  tokenId: bigint,
  options: EvidenceOptions = {},
): Promise<EvidenceFile> {
  const location = { chainId: 31337, registry, tokenId };
  return collect(location, { rpcUrls: [node.url], ...options });
}

/** True files: of a token, of another one of its registry, and of one with its id on another chain. */
export interface TrueFiles {
  own: EvidenceFile;
  another: EvidenceFile;
  invented: EvidenceFile;
  /** Hashes of the blocks of two transfers that gave the document back to the holder before. */
  returningPair: readonly string[];
}

/** A file that somebody changed, and how. */
type Mutation = (file: EvidenceFile, files: TrueFiles, random: SeededRandom) => void;

/** Changes the file of a token as a forger might, or as a disk might. */
export function mutated(files: TrueFiles, kind: string, seed: number): unknown {
  const file = structuredClone(files.own);
  MUTATIONS[kind]?.(file, files, seededRandom(seed));
  return file;
}

/** The members that a list of members of the same file or of another one can take the place of. */
const PARTS = [
  'blocks',
  'events',
  'states',
  'codes',
  'contracts',
  'tokenId',
  'registry',
  'chainId',
  'credential',
] as const;

export const MUTATIONS: Record<string, Mutation> = {
  'a byte of any part': changeOne,
  'several bytes': (file, files, random) => {
    for (let count = 0; count < 4; count++) changeOne(file, files, random);
  },
  'a byte of a part, with its hash made right': (file, files, random) => {
    changeOne(file, files, random);
    for (const document of file.credential?.documents ?? [])
      document.sha256 = sha256(toUtf8Bytes(document.text)).slice(2);
  },
  'an event left out': ({ events }, _files, random) => void events.splice(random.below(events.length), 1),
  'a transaction left out': (file, _files, random) =>
    leaveOut(file, [random.pick(file.events).transactionHash]),
  'an event added': (file, { another, invented }, random) =>
    void file.events.splice(
      random.below(file.events.length),
      0,
      random.pick(random.pick([file, another, invented]).events),
    ),
  'two events swapped': ({ events }, _files, random) => swap(events, random),
  'two blocks swapped': ({ blocks }, _files, random) => swap(blocks, random),
  'two hashes swapped': ({ blocks }, _files, random) => {
    const [one, other] = [random.pick(blocks), random.pick(blocks)];
    [one.hash, other.hash] = [other.hash, one.hash];
  },
  'a part of another token or chain': (file, { another, invented }, random) => {
    const part = random.pick(PARTS);
    Object.assign(file, { [part]: structuredClone(random.pick([another, invented])[part]) });
  },
  'a block of another token or chain': (file, { another, invented }, random) => {
    file.blocks[random.below(file.blocks.length)] = structuredClone(
      random.pick(random.pick([another, invented]).blocks),
    );
  },
  'a state of another block': (file, { another, invented }, random) => {
    const state = structuredClone(random.pick(random.pick([file, another, invented]).states));
    if (random.chance(0.5)) state.blockHash = random.pick(file.blocks).hash;
    file.states[random.below(file.states.length)] = state;
  },
  'a header remade': (file, _files, random) => remakeHeader(file, random, false),
  'a header remade, and its hash everywhere': (file, _files, random) => remakeHeader(file, random, true),
  'a proof replaced by a claim': (file, _files, random) => {
    const block = random.pick(file.blocks);
    block.receiptsTrie = { problem: 'none', claimed: block.transactions.map(() => random.hex(40)) };
    const state = random.pick(file.states);
    state.proof = { problem: 'none' };
    state.holder = random.hex(20);
  },
  'a party exchanged everywhere': (file, _files, random) => {
    const { holder } = random.pick(file.states);
    const text = JSON.stringify(file).replaceAll(holder.slice(2), random.hex(20).slice(2));
    Object.assign(file, JSON.parse(text));
  },
  'a returning pair left out': (file, { returningPair }) => {
    const hashes = file.events.filter(({ blockHash }) => returningPair.includes(blockHash));
    leaveOut(
      file,
      hashes.map(({ transactionHash }) => transactionHash),
    );
    file.blocks = file.blocks.filter(({ hash }) => !returningPair.includes(hash));
  },
  'a returning pair twice': (file, { returningPair }) => {
    const last = file.events.findLastIndex(({ blockHash }) => returningPair.includes(blockHash));
    const pair = file.events.filter(({ blockHash }) => returningPair.includes(blockHash));
    file.events.splice(last + 1, 0, ...structuredClone(pair));
  },
  'a transaction under the hash of another one': (file, _files, random) => {
    const own = random.pick(file.blocks.filter(({ transactions }) => transactions.length > 0));
    const other = random.pick(random.pick(file.blocks).transactions.concat(own.transactions));
    own.transactions = random.chance(0.5)
      ? own.transactions.map((one) => ({ ...one, hash: other.hash }))
      : [...own.transactions, ...own.transactions];
    own.transactionsTrie = { problem: 'none', claimed: own.transactions.map(() => null) };
  },
  'events left out, with their receipts as claims without them': (file, _files, random) => {
    const { hash, transactions } = random.pick(file.blocks);
    file.events = file.events.filter(({ blockHash }) => blockHash !== hash);
    const block = file.blocks.find((one) => one.hash === hash);
    // A receipt without logs.
    const receipt = encodeRlp(['0x01', '0x5208', `0x${'00'.repeat(256)}`, []]);
    if (block) block.receiptsTrie = { problem: 'none', claimed: transactions.map(() => receipt) };
  },
  'another factory': (file, _files, random) => {
    file.contracts.titleEscrowFactory = random.hex(20);
    if (random.chance(0.5)) file.events = file.events.filter(({ address }) => address === file.registry);
  },
  'other code': (file, _files, random) => {
    const { address } = random.pick(file.codes);
    file.codes = file.codes.filter((one) => one.address !== address);
    if (random.chance(0.5)) file.codes.push({ address, code: random.hex(100) });
  },
  'a whole invented chain': (file, { invented }) => void Object.assign(file, structuredClone(invented)),
};

/** Leaves out transactions with their events, from the file's own lists as well. */
function leaveOut(file: EvidenceFile, hashes: readonly string[]): void {
  file.events = file.events.filter(({ transactionHash }) => !hashes.includes(transactionHash));
  for (const block of file.blocks)
    block.transactions = block.transactions.filter(({ hash }) => !hashes.includes(hash));
}

function swap<T>(list: T[], random: SeededRandom): void {
  const [one, other] = [random.below(list.length), random.below(list.length)];
  [list[one], list[other]] = [list[other] as T, list[one] as T];
}

function remakeHeader(file: EvidenceFile, random: SeededRandom, isHashed: boolean): void {
  const block = random.pick(file.blocks);
  const fields = decodeRlp(block.header as string) as string[];
  // Parent, state, transactions, receipts, number, time.
  const at = random.pick([0, 3, 4, 5, 8, 11]);
  fields[at] = random.hex((fields[at]?.length ?? 2) / 2 - 1).replace(/^0x00/, '0x01');
  const header = encodeRlp(fields);
  const before = block.hash;
  block.header = header;
  if (!isHashed) return;
  Object.assign(file, JSON.parse(JSON.stringify(file).replaceAll(before, keccak256(header))));
}

type Slot = { holder: Record<string, unknown>; key: string };

/** Changes one value somewhere in the file: a character, or a number. */
function changeOne(file: EvidenceFile, _files: TrueFiles, random: SeededRandom): void {
  // A part first: nearly all bytes are in the proofs.
  let value: unknown = random.pick(Object.values(file).filter((part) => typeof part === 'object'));
  let slot: Slot | undefined;
  while (typeof value === 'object' && value !== null) {
    const keys = Object.keys(value);
    if (keys.length === 0) return;
    slot = { holder: value as Record<string, unknown>, key: random.pick(keys) };
    value = slot.holder[slot.key];
  }
  if (slot === undefined) return;
  if (typeof value === 'number') slot.holder[slot.key] = value + random.pick([-1, 1]);
  if (typeof value === 'boolean') slot.holder[slot.key] = !value;
  if (typeof value !== 'string' || value === '') return;
  const at = random.below(value.length);
  const other = /^[0-9a-f]$/.test(value[at] ?? '')
    ? random.pick([...'0123456789abcdef'])
    : random.pick([...'AZaz{",']);
  slot.holder[slot.key] = value.slice(0, at) + other + value.slice(at + 1);
}

/** Lists in lists: JSON.parse reads them, functions that call themselves do not. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** Characters that act in a terminal or a page, or that UTF-8 does not have. */
const ACTING = '\u001b]0;owned\u0007\u202e\u0000\u0085<img src=x onerror=alert(1)>\ud800';

/** An address whose checksum is wrong. */
export const WRONG_CHECKSUM = `0x${'aB'.repeat(20)}`;

/** Values of every JSON type, of any size and alphabet. */
const HOSTILE: readonly ((random: SeededRandom) => unknown)[] = [
  ...[null, true, -1, 0.5, 1e308, 2 ** 53, '', '0x', '0x0', [], {}, [[]], [null]].map(
    (value: unknown) => () => value,
  ),
  () => ACTING,
  () => `${ACTING} ${WRONG_CHECKSUM} `,
  () => '\u4e2d\u{1f6a2}'.repeat(500),
  () => ({ toString: 1, valueOf: null, constructor: 'x', hasOwnProperty: 0 }),
  () => JSON.parse('{"__proto__":{"nodes":[],"problem":"x"}}') as unknown,
  () => ({ [ACTING]: ACTING }),
  () => ({ problem: `${ACTING} ${WRONG_CHECKSUM}` }),
  () => ({ problem: ACTING, claimed: [] }),
  (random) => random.hex(random.pick([1, 20, 32, 600])),
  () => `0x${'00'.repeat(100_000)}`,
  () => 'x'.repeat(2_001),
  () => nested(200),
  () => Array<string>(10_000).fill('https://example.com/context'),
];

/** Seldom: each takes a moment. */
const LARGE: readonly (() => unknown)[] = [
  () => nested(200_000),
  () => Array<string>(300_000).fill('https://example.com/context'),
  () => `0x${'00'.repeat(17_000_000)}`,
  () => 'x'.repeat(65_000_000),
];

/** Puts a hostile value into any place of a file, a list many times into itself, or an unknown member. */
export function hostile(file: EvidenceFile, seed: number): unknown {
  const random = seededRandom(seed);
  const changed: unknown = structuredClone(file);
  for (let count = random.pick([1, 1, 2, 3]); count > 0; count--) {
    // The value is at any depth: a part first, because nearly all values are in the proofs.
    let at = { changed } as object;
    let key = 'changed';
    do {
      at = Reflect.get(at, key) as object;
      key = random.pick(Object.keys(at));
      const child: unknown = Reflect.get(at, key);
      if (typeof child !== 'object' || child === null || Object.keys(child).length === 0) break;
    } while (random.chance(0.8));
    const before: unknown = Reflect.get(at, key);
    const value = random.chance(0.7)
      ? alike(before, random)
      : random.pick(random.chance(0.1) ? LARGE : HOSTILE)(random);
    if (Array.isArray(before) && random.chance(0.3)) Reflect.set(at, key, repeated(before, random));
    else if (random.chance(0.1)) Reflect.set(at, random.chance(0.5) ? ACTING : '__proto__x', value);
    else Reflect.set(at, key, value);
  }
  return changed;
}

/** A value that is wrong, but of the form that the member has. */
function alike(before: unknown, random: SeededRandom): unknown {
  if (typeof before === 'number') return random.pick([0, before + 1, 2 ** 31, 2 ** 53 - 1]);
  if (typeof before === 'boolean') return !before;
  if (typeof before !== 'string') return random.pick(HOSTILE)(random);
  const bytes = before.length / 2 - 1;
  if (/^0x[0-9a-f]*$/.test(before)) return random.hex(random.pick([bytes, bytes, 0, 1, 5_000]));
  return random.pick([`${ACTING} ${WRONG_CHECKSUM}`, '\u4e2d\u{1f6a2}'.repeat(500), '', before.repeat(2)]);
}

function repeated(list: readonly unknown[], random: SeededRandom): unknown[] {
  return Array<unknown[]>(random.pick([2, 300]))
    .fill([...list])
    .flat();
}
