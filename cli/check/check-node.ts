import { isError, toBeHex, ZeroAddress } from 'ethers';
import { cut, messageOf, ServiceError } from '../../service/base/errors';
import { createFinalBlockReading } from '../../service/chain/finality';
import { type Confirmations, FINALITY_TAGS, type Network } from '../../service/chain/networks';
import { nodeErrorOf } from '../../service/chain/node-errors';
import {
  chainOrder,
  headNumberOf,
  headOf,
  logsOf,
  refusesUnknownBlocks,
  type ChainLog,
  type LogFilter,
} from '../../service/chain/read-chain';
import { ESCROW_TOPICS } from '../../service/registry/decode-log';
import { receiptLogsOf, transactionIn } from '../../service/chain/read-receipts';
import { createChainCheck } from '../../service/chain/reach-node';
import type { Chain } from '../../service/chain/chain';
import type { Rpc } from '../../service/chain/node';
import type { TransactionSigner } from '../../service/keys/transaction-signer';
import { maskSecrets } from '../errors';

/** One statement of `tdoc check`. `unknown`: it could not be checked. `skipped`: nobody asked for it. */
export interface Finding {
  status: 'ok' | 'skipped' | 'warning' | 'fault' | 'unknown';
  subject: string;
  statement: string;
  remedy?: string | undefined;
}

/** A node, and the registries that are read through it. */
export interface CheckedNode {
  network: Network;
  url: string;
  /** With their checksums. */
  registries: string[];
  /** The first block to be read of each registry; undefined: that of its creation. */
  startBlocks: Map<string, number | undefined>;
  /** Of the registries. */
  confirmations: Confirmations[];
  /** The registry in which the wallet mints, if it does so through this node. */
  issuing: { wallet: TransactionSigner; registryAddress: string } | undefined;
}

/** A command's user waits; the service itself waits longer. */
export const ANSWER_WITHIN_MS = 10_000;
const MINUTE_MS = 60_000;
/** A newest block of this age, in blocks, is unusual on every network. */
const OLD_BLOCKS = 10;

/** A node that is connected. */
export interface OpenNode extends CheckedNode {
  /** Without its secrets. */
  name: string;
  client: Chain;
  bulkClient: Chain;
  /** Undefined until it is known. */
  pace?: ReadingPace;
}

/** How the events are read from a node. */
export interface ReadingPace {
  callsPerBlock: number;
  /** The time of the queries that were asked. */
  msPerCall: number;
}

/** `usable`: the node, unless it does not answer or is of another chain. Nothing else is asked of it then. */
export async function checkNode(
  node: OpenNode,
  now: number,
): Promise<{ findings: Finding[]; usable?: OpenNode }> {
  const { client, bulkClient, network, url } = node;
  const subject = `node ${node.name}`;
  const identity = await found(subject, () => checkIdentity(node));
  if (identity.some(({ status }) => status === 'fault'))
    return { findings: identity.map((one) => ({ ...one, remedy: one.remedy ?? ANOTHER_NODE })) };
  let logs: readonly ChainLog[] = [];
  let pace: ReadingPace | undefined;
  const take = (read: { logs: readonly ChainLog[]; pace: ReadingPace }): void => void ({ logs, pace } = read);
  const findings = [
    ...identity,
    ...(await found(subject, () => checkHead(client, network, now))),
    ...(await found(subject, () => checkTags(client, node))),
    ...(await found(subject, () => checkRanges(node, take))),
    ...(await found(subject, () => checkNumbering(client, logs))),
    ...(await found(subject, () => checkUnknownBlocks(bulkClient))),
    ...(await found(subject, () => checkBatches(bulkClient, url))),
  ];
  return { findings, usable: pace ? { ...node, pace } : node };
}

const ANOTHER_NODE = 'Make it answer, or set RPC_URL to another node.';

/** The findings of a check; a check that fails is a finding. */
export async function found(
  subject: string,
  check: () => Promise<Omit<Finding, 'subject'>[]>,
): Promise<Finding[]> {
  try {
    return (await check()).map((one) => ({ subject, ...one }));
  } catch (thrown) {
    const statement = thrown instanceof ServiceError ? thrown.message : reasonOf(thrown);
    const remedy = thrown instanceof ServiceError ? thrown.remedy : undefined;
    return [{ subject, status: 'fault', statement, remedy }];
  }
}

/** What a check found. */
export type Statements = Omit<Finding, 'subject'>[];

export const ok = (statement: string): Statements[number] => ({ status: 'ok', statement });

/** A node's own words, or what the library says: without the request that it adds. */
export function reasonOf(thrown: unknown): string {
  if (isError(thrown, 'TIMEOUT')) return `does not answer within ${ANSWER_WITHIN_MS / 1000} s`;
  return nodeErrorOf(thrown) ?? cut(maskSecrets(messageOf(thrown)));
}

const LATENCY_SAMPLES = 5;

async function checkIdentity({ client, network, url }: OpenNode): Promise<Statements> {
  await createChainCheck(client, url, network)();
  const times: number[] = [];
  for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
    const start = performance.now();
    await headNumberOf(client);
    times.push(performance.now() - start);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(LATENCY_SAMPLES / 2)] ?? 0;
  return [ok(`chain id ${network.chainId}, answers in ${Math.max(1, Math.round(median))} ms`)];
}

/** A block's timestamp says nothing on a local chain, which mines on demand. */
async function checkHead(client: Chain, network: Network, now: number): Promise<Statements> {
  const head = await headOf(client);
  if (network.local) return [ok(`newest block ${head.number}`)];
  const ageMs = Math.max(0, now - head.timestamp * 1000);
  const statement = `newest block ${head.number}, ${Math.round(ageMs / 1000)} s old`;
  if (ageMs <= Math.max(MINUTE_MS, OLD_BLOCKS * network.blockTimeMs)) return [ok(statement)];
  const remedy = 'The node is behind the chain, or this clock is wrong: use another node (RPC_URL).';
  return [{ status: 'warning', statement, remedy }];
}

/**
 * What the chain itself calls final. Not every node knows these tags.
 *
 * @throws ConfigurationError FINALITY_UNSUPPORTED if a registry has a tag that the node does not know.
 */
async function checkTags(client: Chain, { network, confirmations }: CheckedNode): Promise<Statements> {
  const head = await headNumberOf(client);
  for (const one of confirmations) await createFinalBlockReading(client, network, one)(head);
  const tags = await Promise.all(
    FINALITY_TAGS.map(async (tag) => {
      const block = (await client.send('eth_getBlockByNumber', [tag, false]).catch(() => null)) as {
        number?: unknown;
      } | null;
      const number = Number(block?.number ?? NaN);
      return Number.isSafeInteger(number)
        ? `${tag} is ${Math.max(0, head - number)} blocks behind the newest`
        : `does not know ${tag}`;
    }),
  );
  return [ok(tags.join(', '))];
}

/** The widest ranges first. The service starts with the first one, and narrows it by itself. */
const WIDTHS = [2_000, 1_000, 500, 250, 100, 50, 10, 1];

/** The widest range, up to the newest block, of which the node gives logs; `blocks` is 0 if it gives none. */
async function widestRange(
  client: Rpc,
  toBlock: number,
  filter: Pick<LogFilter, 'address' | 'topics'>,
): Promise<{ blocks: number; isWhole: boolean; logs: ChainLog[]; refusal: unknown; ms: number }> {
  let refusal: unknown;
  let start = 0;
  for (const width of WIDTHS) {
    try {
      start = performance.now();
      const logs = await logsOf(client, { ...filter, fromBlock: Math.max(0, toBlock - width + 1), toBlock });
      const ms = performance.now() - start;
      return { blocks: Math.min(width, toBlock + 1), isWhole: width > toBlock, logs, refusal, ms };
    } catch (thrown) {
      refusal = thrown;
    }
  }
  return { blocks: 0, isWhole: false, logs: [], refusal, ms: performance.now() - start };
}

/** `take` receives the newest logs of the registries, and how they will be read. */
async function checkRanges(
  { bulkClient: client, registries, network }: OpenNode,
  take: (read: { logs: ChainLog[]; pace: ReadingPace }) => void,
): Promise<Statements> {
  const address = registries.length > 0 ? [...registries] : [ZeroAddress];
  const toBlock = await headNumberOf(client);
  const own = await widestRange(client, toBlock, { address });
  if (own.blocks === 0) {
    take({ logs: [], pace: { callsPerBlock: CALLS_OF_RECEIPTS, msPerCall: own.ms } });
    const remedy =
      'Events are read from the receipts of blocks, up to three calls a block. Histories of tokens and ' +
      'evidence cannot be read here: use another node (RPC_URL).';
    return [{ status: 'warning', statement: `eth_getLogs is refused: ${reasonOf(own.refusal)}`, remedy }];
  }
  const all = own.isWhole ? ', which is all there are' : '';
  const statement = `eth_getLogs takes ${own.blocks.toLocaleString('en')} blocks${all}`;
  const topics = await widestRange(client, toBlock, { topics: ESCROW_TOPICS });
  const many = Array.from({ length: MANY_ADDRESSES }, (_, at) => toBeHex(at + 1, 20));
  const escrows = topics.blocks < own.blocks ? await widestRange(client, toBlock, { address: many }) : own;
  const byAddresses = Math.min(own.blocks, escrows.blocks);
  const width = topics.blocks >= own.blocks ? topics.blocks : Math.max(topics.blocks, byAddresses);
  const callsPerBlock = Math.min(CALLS_OF_RECEIPTS, CALLS_OF_A_RANGE / Math.max(1, width));
  take({ logs: own.logs, pace: { callsPerBlock, msPerCall: Math.max(own.ms, topics.ms, escrows.ms) } });
  const remedy = `More are refused (${reasonOf(own.refusal)}): catching up takes more requests.`;
  const blocks = { own: own.blocks, topics: topics.blocks, escrows: escrows.blocks };
  return [
    own.refusal === undefined ? ok(statement) : { status: 'warning', statement, remedy },
    wayOfReading(network, callsPerBlock, blocks),
  ];
}

const MANY_ADDRESSES = 1_000;
/** Two queries, each asked twice, and the headers of the first and the last block twice. */
const [CALLS_OF_A_BLOCK, CALLS_OF_A_RANGE] = [4, 8];
/** Header, hashes of the transactions, and their receipts. */
const CALLS_OF_RECEIPTS = 3;
/** The two queries of a range, or the headers of its ends, are asked at the same time. */
const CALLS_AT_ONCE = 2;
const CALLS_OF_FREE_PLANS = 15;

const inDigits = (number: number): string => Math.ceil(number).toLocaleString('en');

/** How long a first start takes to read the blocks up to the newest. */
export function catchUp(
  { callsPerBlock, msPerCall }: ReadingPace,
  { fromBlock, head }: { fromBlock: number; head: number },
): Statements[number] {
  const blocks = Math.max(0, head - fromBlock + 1);
  const calls = blocks * callsPerBlock;
  const perSecond = Math.ceil((CALLS_AT_ONCE * 1_000) / Math.max(1, msPerCall));
  const [lasts, often] = [perSecond, CALLS_OF_FREE_PLANS].map((rate) => durationOf(calls / rate));
  return ok(
    `a first start reads ${inDigits(blocks)} blocks, from block ${fromBlock} on: about ${inDigits(calls)} ` +
      `calls. They take ${lasts} at ${inDigits(perSecond)} a second, as fast as this node answered here, ` +
      `and ${often} at the ${CALLS_OF_FREE_PLANS} a second that free plans often allow`,
  );
}

/** The units of a duration, in seconds. */
const UNITS: readonly [name: string, seconds: number][] = [
  ['days', 86_400],
  ['hours', 3_600],
  ['minutes', 60],
];

function durationOf(seconds: number): string {
  const [name, unit] = UNITS.find((one) => seconds >= 2 * one[1]) ?? [];
  return unit === undefined ? 'less than two minutes' : `${Math.round(seconds / unit)} ${name}`;
}

/** How the events will be read, by the blocks that the node gives for each kind of query. */
function wayOfReading(
  { blockTimeMs }: Network,
  callsPerBlock: number,
  { own, topics, escrows }: Record<'own' | 'topics' | 'escrows', number>,
): Statements[number] {
  const forMany = `${inDigits(1_000_000 * callsPerBlock)} calls for a million blocks`;
  const perMinute = blockTimeMs > 0 ? Math.round((MINUTE_MS / blockTimeMs) * CALLS_OF_A_BLOCK) : undefined;
  const cost = perMinute === undefined ? forMany : `${forMany}, and ${perMinute} a minute at the head`;
  if (topics >= own) return ok(`events are read by topic, for any number of tokens: ${cost}`);
  const without = topics === 0 ? 'no logs' : `logs of ${topics} blocks only`;
  if (escrows > 0) {
    const of = `gives ${without} without an address: title escrows are asked for by their addresses`;
    return ok(`${of}, ${MANY_ADDRESSES.toLocaleString('en')} at once: ${cost}`);
  }
  return {
    status: 'warning',
    statement: `gives ${without} without an address, and none of ${MANY_ADDRESSES} addresses at once`,
    remedy: 'Catching up with many tokens takes more requests: another node (RPC_URL) may take fewer.',
  };
}

/**
 * Whether the node counts logs through the block: nothing is said without a block in which several
 * transactions have logs.
 */
async function checkNumbering(client: Chain, logs: readonly ChainLog[]): Promise<Statements> {
  const [second, first] =
    logs.flatMap((log, at) => {
      const before = logs[at - 1];
      const isOther = before?.blockHash === log.blockHash && before.transactionHash !== log.transactionHash;
      return isOther ? [[log, before]] : [];
    })[0] ?? [];
  if (first === undefined || second === undefined) return [];
  const receipts = await receiptLogsOf(client, [first, second]);
  const [one = [], other = []] = [first, second].map((log) => receipts.get(transactionIn(log)));
  const all = [...one, ...other].sort(chainOrder);
  const isCounted = (list: readonly ChainLog[]): boolean =>
    list.every(({ index }, at) => at === 0 || index > (list[at - 1]?.index ?? 0));
  if (isCounted(all) && isCounted(logs.filter(({ blockHash }) => blockHash === first.blockHash)))
    return [ok('counts logs within the block')];
  const statement = `counts logs within each transaction of block ${first.blockNumber}, not within the block`;
  const remedy =
    'All events come, in order, but such a block takes the receipts of all its transactions: ' +
    'a node that counts within the block (RPC_URL) takes fewer requests.';
  return [{ status: 'warning', statement, remedy }];
}

/** Behind one name, a node that is behind others must not answer like one whose block has no logs. */
async function checkUnknownBlocks(client: Chain): Promise<Statements> {
  if (await refusesUnknownBlocks(client)) return [ok('refuses the logs of a block that it does not have')];
  const statement = 'gives no logs, and no error, for a block that it does not have';
  const remedy =
    'Blocks are read by number where their headers do not show which logs they have, ' +
    'which takes one more call each: a newer version of the node program may refuse.';
  return [{ status: 'warning', statement, remedy }];
}

/** Batches are used over HTTP only, and save requests: without them all works. */
async function checkBatches(client: Chain, url: string): Promise<Statements> {
  if (/^wss?:/.test(url)) return [ok('calls go one by one over WebSocket')];
  await client.sendBatch('eth_chainId', [[], []]).catch(() => undefined);
  if (client.learned.answersBatches) return [ok('answers batches')];
  const remedy = 'Calls go one by one, which is slower while catching up.';
  return [{ status: 'warning', statement: 'does not answer batches', remedy }];
}
