import { toQuantity, ZeroAddress } from 'ethers';
import pMap from 'p-map';
import { timeAt } from '../base/time';
import { RequestError, orUndefined } from '../base/errors';
import { readPackage } from '../base/project-root';
import {
  blockChanged,
  chainOrder,
  existingBlock,
  headNumberOf,
  logsOf,
  nameLogs,
  readAgainWhileItMayPass,
  readBackwards,
  type ChainLog,
} from '../chain/read-chain';
import { blockReceiptsOf, logsOfReceipt } from '../chain/read-receipts';
import type { Chain } from '../chain/chain';
import { codeAt } from '../chain/read-state';
import { BURN_ADDRESS, type DecodedLog } from '../registry/decode-log';
import { readTokenState, type TokenState } from '../registry/read-token-state';
import { registryInterface, type ReachedRegistry } from '../registry/registry-contracts';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { endorsementsOf } from '../token/endorsement-chain';
import { readTokenLogs } from '../token/read-token-history';
import { decodeHeader, encodeHeader, encodeReceipt, encodeTransaction, type Answer } from './block-encoding';
import {
  FORMAT,
  VERSION,
  type EvidenceBlock,
  type EvidenceEvent,
  type EvidenceFile,
  type EvidenceState,
} from './evidence-file';
import { contractsOf, provenMembers, readProvenState, variablesOf } from './proven-state';
import { implementationOf } from './published-contracts';
import { proveListed } from './tries';

/**
 * `stateAt`: numbers of more blocks whose state is to be proven. Many nodes keep that of recent blocks
 * only. `mostBytes`: of the encoded transactions and receipts of all blocks.
 */
export interface CollectionOptions {
  stateAt?: readonly number[];
  mostBytes?: number;
  onProgress?: (line: string) => void;
}

const CONCURRENT_CALLS = 4;

type MintedState = Exclude<TokenState, { state: 'not minted' }>;

/** The parts of a file beside its blocks: they say which blocks are needed. */
type Frame = Omit<EvidenceFile, 'blocks' | 'events' | 'states'>;

/**
 * Collects the proofs of a token's events and of its state, up to the newest block that is final on its
 * network.
 *
 * @throws RequestError TOKEN_NOT_MINTED, EVIDENCE_TOO_LARGE; ChainError BLOCK_CHANGED,
 *   TOKEN_HISTORY_INCOMPLETE (retryable); any error of the node.
 */
export async function collectEvidence(
  sources: ReachedRegistry,
  tokenId: bigint,
  options: CollectionOptions = {},
): Promise<EvidenceFile> {
  return readAgainWhileItMayPass(sources.client.time, () => collectOnce(sources, tokenId, options));
}

async function collectOnce(
  sources: ReachedRegistry,
  tokenId: bigint,
  { stateAt = [], mostBytes = Infinity, onProgress }: CollectionOptions,
): Promise<EvidenceFile> {
  const { client, network } = sources;
  const last = await existingBlock(client, Math.max(0, (await headNumberOf(client)) - network.confirmations));
  const later = stateAt.find((number) => number > last.number);
  if (later !== undefined) {
    const remedy = `Name blocks up to ${last.number}, the newest with the confirmations of ${network.name}.`;
    throw new RequestError('BLOCK_TOO_NEW', `Block ${later} is not final yet. ${remedy}`, { remedy });
  }
  const numbers = [...new Set([...stateAt, last.number])].sort((left, right) => left - right);
  const read = async (number: number): Promise<[MintedState, string]> => [
    await mintedState(sources, tokenId, number),
    (await existingBlock(client, number)).hash,
  ];
  const states = await pMap(numbers, read, { concurrency: CONCURRENT_CALLS });
  const own = await readTokenLogs(sources.bulkClient, sources.registry.contracts, tokenId, {
    fromBlock: sources.registry.genesisBlock,
    toBlock: last.number,
  });
  const [newest] = states.at(-1) ?? [];
  // A missing log is noticed here, unless it changed nothing.
  if (newest) endorsementsOf({ logs: own.logs, isWhole: true }, newest);
  const logs = await withPauses(sources, own.logs, last.number);
  onProgress?.(`${logs.length} events up to block ${last.number}`);
  const stateBlocks = states.map(([, hash]) => hash);
  const { blocks, receipts } = await blocksOf(sources, logs, stateBlocks, { mostBytes, onProgress });
  const frame = await frameOf(sources, tokenId, last.number);
  const proven = await pMap(states, ([state, hash]) => provenState(client, frame, state, blocks.get(hash)), {
    concurrency: CONCURRENT_CALLS,
  });
  if ((await existingBlock(client, last.number)).hash !== last.hash) throw blockChanged(last.number);
  const byNumber = [...blocks.values()].sort((left, right) => left.number - right.number);
  const events = nameLogs(logs).map(({ log, name }) => eventOf(log, name, receipts));
  return { ...frame, blocks: byNumber, events, states: proven };
}

async function mintedState(
  { client, registry }: ReachedRegistry,
  tokenId: bigint,
  number: number,
): Promise<MintedState> {
  // Before its registry, there is no contract that could answer.
  const state =
    number >= registry.genesisBlock && (await readTokenState(client, registry.contracts, tokenId, number));
  if (state && state.state !== 'not minted') return state;
  const limit = 'Evidence goes up to the newest block that has the confirmations of the network.';
  throw new RequestError('TOKEN_NOT_MINTED', `The token was not minted by block ${number}. ${limit}`);
}

/** The logs of the token, and of pauses of its registry since the token's first log; in chain order. */
async function withPauses(
  { bulkClient, registry }: ReachedRegistry,
  own: readonly DecodedLog[],
  toBlock: number,
): Promise<ChainLog[]> {
  const logs: ChainLog[] = [...own];
  const fromBlock = logs[0]?.blockNumber ?? toBlock;
  const filter = { address: [registry.contracts.registry], topics: PAUSE_TOPICS };
  const read = (first: number, last: number): Promise<ChainLog[]> =>
    logsOf(bulkClient, { ...filter, fromBlock: first, toBlock: last });
  await readBackwards({ fromBlock, toBlock }, read, (pauses) => {
    logs.push(...pauses);
    return false;
  });
  return logs.sort(chainOrder);
}

const PAUSE_TOPICS = [
  registryInterface.getEvent('PauseWithRemark').topicHash,
  registryInterface.getEvent('UnpauseWithRemark').topicHash,
];

async function frameOf(
  { client, network, registry }: ReachedRegistry,
  tokenId: bigint,
  number: number,
): Promise<Frame> {
  const { contracts } = registry;
  const registryCode = await codeAt(client, contracts.registry, number);
  const { name, version } = readPackage();
  const frame: Frame = {
    format: FORMAT,
    version: VERSION,
    software: `${name} ${version}`,
    collectedAt: timeAt(client.time.now()),
    chainId: network.chainId,
    network: network.name,
    registry: contracts.registry,
    tokenId: tokenIdHexOf(tokenId),
    contracts: {
      titleEscrowFactory: contracts.titleEscrowFactory,
      titleEscrowImplementation: contracts.titleEscrowImplementation,
      registryImplementation: implementationOf(registryCode) ?? contracts.registry,
    },
    codes: [],
  };
  const addresses = [...new Set(Object.values(contractsOf(frame)))];
  frame.codes = await pMap(addresses, async (address) => ({
    address,
    code: await codeAt(client, address, number),
  }));
  return frame;
}

/** The blocks of the logs and of the states, by their hashes, and the receipts of the logs' transactions. */
async function blocksOf(
  { bulkClient }: ReachedRegistry,
  logs: readonly ChainLog[],
  stateBlocks: readonly string[],
  { mostBytes, onProgress }: { mostBytes: number; onProgress: CollectionOptions['onProgress'] },
): Promise<{ blocks: Map<string, EvidenceBlock>; receipts: Map<string, Answer> }> {
  const wanted = new Map<string, Set<string>>(stateBlocks.map((hash) => [hash, new Set()]));
  for (const { blockHash, transactionHash } of logs)
    wanted.set(blockHash, (wanted.get(blockHash) ?? new Set()).add(transactionHash));
  const blocks = new Map<string, EvidenceBlock>();
  const receipts = new Map<string, Answer>();
  let bytes = 0;
  const readBlock = async ([hash, transactions]: [string, Set<string>]): Promise<void> => {
    const read = await blockWith(bulkClient, hash, transactions, receipts);
    bytes += read.bytes;
    if (bytes > mostBytes) throw tooLarge(mostBytes);
    blocks.set(hash, read.block);
    onProgress?.(`block ${blocks.size} of ${wanted.size}`);
  };
  await pMap(wanted, readBlock, { concurrency: CONCURRENT_CALLS });
  return { blocks, receipts };
}

function tooLarge(mostBytes: number): RequestError {
  const remedy = 'Use `npx tdoc evidence`, which has no limit.';
  const found = `more than ${mostBytes / 1e6} MB of transactions and receipts`;
  const message = `The blocks with events of the token have ${found}: too many for one answer. ${remedy}`;
  return new RequestError('EVIDENCE_TOO_LARGE', message, { remedy });
}

/** @param receiptsByHash gets those of the transactions that are wanted. */
async function blockWith(
  client: Chain,
  hash: string,
  wanted: ReadonlySet<string>,
  receiptsByHash: Map<string, Answer>,
): Promise<{ block: EvidenceBlock; bytes: number }> {
  const block = (await client.send('eth_getBlockByHash', [hash, wanted.size > 0])) as Answer | null;
  if (block === null || block.hash !== hash) throw blockChanged(Number(block?.number));
  const header = encodeHeader(block);
  const roots = {
    parentHash: String(block.parentHash),
    stateRoot: String(block.stateRoot),
    transactionsRoot: String(block.transactionsRoot),
    receiptsRoot: String(block.receiptsRoot),
  };
  const all = wanted.size > 0 ? (block.transactions as Answer[]) : [];
  const positions = [...all.keys()].filter((position) => wanted.has(String(all[position]?.hash)));
  const receipts = wanted.size > 0 ? await receiptsOf(client, hash, all) : [];
  // Polygon lists what it takes over from Ethereum as a last transaction, which its tries do not have.
  const count = all.length - (isSystem(all.at(-1)) ? 1 : 0);
  const encoded = { receipts: receipts.map(encodedOf), transactions: all.map(encodeTransaction) };
  const characters = [...encoded.receipts, ...encoded.transactions].map((one) => one?.length ?? 0);
  const evidence: EvidenceBlock = {
    hash,
    number: Number(block.number),
    header: header ?? {
      problem: 'the header has fields that are not known here: its hash cannot be computed',
      claimed: { ...roots, timestamp: Number(block.timestamp) },
    },
    transactions: positions.map((position) => ({ position, hash: String(all[position]?.hash) })),
    receiptsTrie: await trieOf(encoded.receipts, positions, roots.receiptsRoot, count),
    transactionsTrie: await trieOf(encoded.transactions, positions, roots.transactionsRoot, count),
  };
  for (const position of positions) receiptsByHash.set(String(all[position]?.hash), receipts[position] ?? {});
  return { block: evidence, bytes: characters.reduce((sum, one) => sum + one / 2, 0) };
}

function isSystem(transaction: Answer | undefined): boolean {
  return transaction?.from === ZeroAddress && transaction.to === ZeroAddress;
}

/**
 * The part of a trie that proves some values. If all of the values do not make the root, those that the first
 * `count` values make are tried.
 */
async function trieOf(
  values: readonly (string | undefined)[],
  positions: readonly number[],
  root: string,
  count: number,
): Promise<EvidenceBlock['receiptsTrie']> {
  if (positions.length === 0) return { nodes: [] };
  for (const length of new Set([values.length, count])) {
    const listed = values.slice(0, length);
    const isReadable = (value: string | undefined): value is string => value !== undefined;
    if (!listed.every(isReadable) || positions.some((position) => position >= length)) continue;
    const { nodes, root: made } = await proveListed(listed, positions);
    if (made === root) return { nodes };
  }
  return {
    problem: 'the block has entries whose encoding is not known here: they do not make its root',
    claimed: positions.map((position) => values[position] ?? null),
  };
}

/** The receipts of the transactions of a block. Undefined where the node gives none. */
async function receiptsOf(
  client: Chain,
  blockHash: string,
  transactions: readonly Answer[],
): Promise<(Answer | undefined)[]> {
  const hashes = transactions.map(({ hash }) => [hash]);
  const receipts =
    (await blockReceiptsOf(client, blockHash, (all) => all as (Answer | null)[])) ??
    ((await client.sendBatch('eth_getTransactionReceipt', hashes)) as (Answer | null)[]);
  const byHash = new Map(receipts.map((receipt) => [receipt?.transactionHash, receipt ?? undefined]));
  return transactions.map(({ hash }) => {
    const receipt = byHash.get(hash);
    return receipt?.blockHash === blockHash ? receipt : undefined;
  });
}

function encodedOf(receipt: Answer | undefined): string | undefined {
  return receipt && orUndefined(() => encodeReceipt(receipt));
}

/** The event of a log, which is found in the receipt by its name (`nameLogs`). */
function eventOf(
  { address, topics, data, ...log }: ChainLog,
  name: string,
  receipts: ReadonlyMap<string, Answer>,
): EvidenceEvent {
  const receipt = receipts.get(log.transactionHash) ?? {};
  const logs = 'logs' in receipt ? logsOfReceipt(receipt, log, 'eth_getTransactionReceipt') : [];
  const logIndex = nameLogs(logs).findIndex((one) => one.name === name);
  if (logIndex < 0) throw blockChanged(log.blockNumber);
  const { blockHash, transactionHash } = log;
  return { blockHash, transactionHash, logIndex, address, topics, data };
}

/**
 * The state of the token at the end of a block, with its proof if the node gives one that leads to the
 * header.
 */
async function provenState(
  client: Chain,
  frame: Frame,
  state: MintedState,
  block: EvidenceBlock | undefined,
): Promise<EvidenceState> {
  if (block === undefined) throw blockChanged(state.block);
  const claimed = {
    blockHash: block.hash,
    owner: ownerOf(state, frame.registry),
    beneficiary: addressOf(state.beneficiary),
    holder: addressOf(state.holder),
    nominee: addressOf(state.nominee),
    previousBeneficiary: addressOf(state.previousBeneficiary),
    previousHolder: addressOf(state.previousHolder),
    isPaused: state.isPaused,
  };
  const unproven = (problem: string): EvidenceState => ({ ...claimed, proof: { problem } });
  const proof = await stateProof(client, frame, block.number).catch(() => undefined);
  if (proof === undefined)
    return unproven('the node gives no proof of the state at this block (eth_getProof)');
  const { stateRoot } = typeof block.header === 'string' ? decodeHeader(block.header) : block.header.claimed;
  if (provenMembers(readProvenState(frame, proof, stateRoot))) return { ...claimed, proof };
  return unproven("the node's proof does not lead to the state root of the block");
}

function ownerOf({ state, titleEscrow }: MintedState, registry: string): string {
  if (state === 'in escrow') return titleEscrow.toLowerCase();
  return state === 'shredded' ? BURN_ADDRESS : registry;
}

function addressOf(address: string | undefined): string {
  return address?.toLowerCase() ?? ZeroAddress;
}

/** An answer of eth_getProof (EIP-1186). */
interface ProofAnswer {
  accountProof: string[];
  storageProof: { proof: string[] }[];
}

async function stateProof(
  client: Chain,
  frame: Frame,
  number: number,
): Promise<{ accountNodes: string[]; storageNodes: string[] }> {
  const contracts = new Set(Object.values(contractsOf(frame)));
  const variables = Object.values(variablesOf(frame));
  const readProof = async (address: string): Promise<ProofAnswer> => {
    const slots = variables.filter((one) => one.address === address).map(({ slot }) => slot);
    return (await client.send('eth_getProof', [address, slots, toQuantity(number)])) as ProofAnswer;
  };
  const proofs = await pMap(contracts, readProof, { concurrency: CONCURRENT_CALLS });
  const storageProofs = proofs.flatMap(({ storageProof }) => storageProof);
  return {
    accountNodes: [...new Set(proofs.flatMap(({ accountProof }) => accountProof))],
    storageNodes: [...new Set(storageProofs.flatMap(({ proof }) => proof))],
  };
}
