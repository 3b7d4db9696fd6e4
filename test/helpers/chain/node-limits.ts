import type { Time } from '../../../service/base/time';
import type { SeededRandom } from '../seeded-random';
import { createMeter } from './metered-provider';
import type { Answerer, HttpAnswer, RpcAnswer, RpcCall } from './rpc-proxy';
import type { Ask } from './unusual-logs';

// The limits and habits of nodes. Each answers in the place of a real node, or changes its answers. No answer
// is false: whoever asks in the right way gets everything. node-profiles.ts has nodes that are made of them.

export type Refusal = RpcAnswer | HttpAnswer;
export type RpcError = { code: number; message: string; data?: unknown };

interface LogFilter {
  address?: string | string[];
  blockHash?: string;
  fromBlock?: string;
  toBlock?: string;
}

const LOGS = 'eth_getLogs';
export const HEADERS = /^eth_getBlockBy/;
export const RECEIPTS = /^eth_get(Transaction|Block)Receipts?$/;
export const WITH_LOGS = /^eth_getLogs$|Receipts?$/;
const ALL = /^eth_get/;

/**
 * Both profiles at once: the first that does not let a call through answers, and changes of answers add up.
 */
export function both(one: Answerer, other: Answerer): Answerer {
  return async (method, params, forward, calls) => {
    let refusal: Awaited<ReturnType<Answerer>> | undefined;
    const decision = await one(
      method,
      params,
      async (changed = params) => {
        const inner = await other(method, changed, forward, calls);
        if (inner === 'none') return forward(changed);
        if (typeof inner === 'object' && !('status' in inner)) return inner;
        refusal = inner;
        return { error: { code: 0, message: 'refused' } };
      },
      calls,
    );
    return refusal ?? (decision === 'none' ? other(method, params, forward, calls) : decision);
  };
}

/** An error of the node with this status. `page`: the body is not JSON. */
export function refusalOf(error: RpcError, status = 200, page?: string): Refusal {
  if (status === 200) return { error };
  const headers = { 'Content-Type': page === undefined ? 'application/json' : 'text/html' };
  return { status, headers, body: page ?? JSON.stringify({ jsonrpc: '2.0', id: null, error }) };
}

/** Words that nobody knows: no word of a message of a node has only these letters. */
export function randomWords(random: SeededRandom): string {
  const syllable = (): string => random.pick([...'bdgjkvz']) + random.pick([...'aou']);
  const word = (): string => Array.from({ length: 2 + random.below(3) }, syllable).join('');
  return Array.from({ length: 3 + random.below(5) }, word).join(' ');
}

/** A refusal that a node always uses, in words, with a code and a status that say nothing. */
export function randomRefusal(random: SeededRandom): Refusal {
  const codes = [-32_000, -32_603, -33_000 - random.below(900), 100 + random.below(300)];
  const message = randomWords(random);
  const status = random.pick([200, 200, 400, 413]);
  return refusalOf({ code: random.pick(codes), message }, status, random.chance(0.3) ? message : undefined);
}

/** Refuses the logs of these filters. */
export function refusingLogs(isRefused: (filter: LogFilter) => boolean, refusal: Refusal): Answerer {
  return (method, [filter]) => (method === LOGS && isRefused(filter as LogFilter) ? refusal : 'none');
}

/** The blocks of a filter; 1 for that of a hash. */
function widthOf({ fromBlock, toBlock }: LogFilter): number {
  return fromBlock === undefined ? 1 : Number(toBlock) - Number(fromBlock) + 1;
}

const addressesOf = ({ address }: LogFilter): number => (address === undefined ? 0 : [address].flat().length);

/** The widths, in blocks, of the ranges whose logs were asked for. */
export function widthsOf(requests: readonly RpcCall[]): number[] {
  return requests.flatMap(({ method, params: [filter] }) =>
    method === LOGS && (filter as LogFilter).fromBlock !== undefined ? [widthOf(filter as LogFilter)] : [],
  );
}

/** Refuses ranges of more blocks. `without`: the limit of filters without an address. */
export function atMostBlocks(blocks: number, refusal: Refusal, without = blocks): Answerer {
  return refusingLogs((filter) => widthOf(filter) > (addressesOf(filter) > 0 ? blocks : without), refusal);
}

/** Refuses logs without an address, and of more addresses. */
export function atMostAddresses(addresses: number, refusal: Refusal): Answerer {
  return refusingLogs((filter) => addressesOf(filter) < 1 || addressesOf(filter) > addresses, refusal);
}

/** Refuses answers of more logs, unless they are of one block. */
export function atMostLogs(logs: number, refusal: Refusal): Answerer {
  return async (method, params, forward) => {
    if (method !== LOGS || widthOf(params[0] as LogFilter) === 1) return 'none';
    const answer = await forward();
    return 'result' in answer && (answer.result as unknown[]).length > logs ? refusal : answer;
  };
}

/** Refuses what is more than so many calls a second. */
export function atMostCalls(perSecond: number, time: Time, refusal: Refusal): Answerer {
  const meter = createMeter(perSecond, time);
  return () => (meter(1) ? 'none' : refusal);
}

/** Answers a request for the logs of a block's hash with this. */
export function logsByHash(refusal: Refusal): Answerer {
  return refusingLogs(({ blockHash }) => blockHash !== undefined, refusal);
}

/** Changes each member of the results of these methods, or leaves it out. */
function altering(methods: RegExp, change: (key: string, value: unknown) => unknown): Answerer {
  return async (method, _params, forward) => {
    if (!methods.test(method)) return 'none';
    const answer = await forward();
    return 'result' in answer ? (JSON.parse(JSON.stringify(answer), change) as RpcAnswer) : answer;
  };
}

export const without = (methods: RegExp, ...left: string[]): Answerer =>
  altering(methods, (key, value) => (left.includes(key) ? undefined : value));

/** Gives no log that is marked as removed. */
export const WITHOUT_REMOVED = altering(/^eth_getLogs$/, (key, value) =>
  key === 'result' ? (value as { removed?: boolean }[]).filter(({ removed }) => removed !== true) : value,
);

/** Gives the headers this bloom. */
export const withBloom = (bloom: string): Answerer =>
  altering(HEADERS, (key, value) => (key === 'logsBloom' ? bloom : value));

/** Blooms of nodes that do not compute them, and of busy chains. */
export const BLOOMS = { zeroes: `0x${'00'.repeat(256)}`, empty: '0x', full: `0x${'ff'.repeat(256)}` };

/** Addresses as XDC nodes of 2022 give them. */
export const XDC_ADDRESSES = altering(ALL, (_, value) =>
  typeof value === 'string' && /^0x[\da-f]{40}$/i.test(value) ? value.replace('0x', 'xdc') : value,
);

/** Fields of data, which may be as short as a quantity. A header's `nonce` is data of eight bytes. */
const DATA = ['input', 'data', 'extraData', 'nonce'];

/** Writes quantities with a leading zero. */
export const LEADING_ZEROS = altering(ALL, (key, value) =>
  typeof value === 'string' && !DATA.includes(key) && /^0x[\da-f]{1,16}$/.test(value)
    ? value.replace('0x', '0x0')
    : value,
);

/** Ignores the hash in a filter: gives the logs of the newest block. */
export const IGNORES_HASH: Answerer = (method, [filter], forward) => {
  const { blockHash, ...others } = (filter ?? {}) as LogFilter;
  if (method !== LOGS || blockHash === undefined) return 'none';
  return forward([{ ...others, fromBlock: 'latest', toBlock: 'latest' }]);
};

/** Answers each request of several calls as a whole. */
export const refusingBatches =
  (refusal: HttpAnswer): Answerer =>
  (_method, _params, _forward, calls = 1) =>
    calls > 1 ? refusal : 'none';

/** Gives the receipts of whole blocks, which Hardhat's node does not. */
export const withBlockReceipts =
  (ask: Ask): Answerer =>
  async (method, [block]) => {
    if (method !== 'eth_getBlockReceipts') return 'none';
    const by = String(block).length === 66 ? 'eth_getBlockByHash' : 'eth_getBlockByNumber';
    const header = await ask(by, [block, false]);
    if ('error' in header || header.result === null) return header;
    const { transactions } = header.result as { transactions: string[] };
    const answers = await Promise.all(transactions.map((hash) => ask('eth_getTransactionReceipt', [hash])));
    return { result: answers.map((answer) => ('result' in answer ? answer.result : null)) };
  };

/** How a node says that it does not have old blocks any more. `blocks` undefined: it has the headers. */
export interface Absence {
  blocks: RpcAnswer | undefined;
  logs: RpcAnswer;
  receipts: RpcAnswer;
}

const NULL: RpcAnswer = { result: null };
const EXPIRED: RpcAnswer = { error: { code: 4444, message: 'pruned history unavailable' } };

/** The ways of nodes to say so. */
export const ABSENCES: Record<string, Absence> = {
  'as geth does, with code 4444': { blocks: EXPIRED, logs: EXPIRED, receipts: EXPIRED },
  'as Erigon does: null, and "block not found" to logs': {
    blocks: NULL,
    logs: { error: { code: -32_000, message: 'block not found 17' } },
    receipts: NULL,
  },
  'as Nethermind does: null, and words about receipts to logs': {
    blocks: NULL,
    logs: { error: { code: -32_000, message: 'No receipt could be found for the From block 17.' } },
    receipts: NULL,
  },
  'as Erigon does since 2025, which keeps the headers': {
    blocks: undefined,
    logs: { error: { code: -32_000, message: 'old data not available due to pruning: requested block 17' } },
    receipts: NULL,
  },
  'as reth does, which keeps the headers': {
    blocks: undefined,
    logs: { error: { code: -32_603, message: 'state at block #17 is pruned' } },
    receipts: NULL,
  },
  'as Erigon and reth did, with no logs': { blocks: undefined, logs: { result: [] }, receipts: NULL },
};

/** Answers like a node that has the blocks from `oldest` on. */
export function prunedBelow(oldest: number, { blocks, logs, receipts }: Absence, ask: Ask): Answerer {
  const isOld = (block: unknown): boolean => String(block).startsWith('0x') && Number(block) < oldest;
  const numberOf = (answer: RpcAnswer): unknown => {
    const found = 'result' in answer ? [answer.result].flat()[0] : undefined;
    const { number, blockNumber } = (found ?? {}) as { number?: string; blockNumber?: string };
    return number ?? blockNumber;
  };
  return async (method, params, forward) => {
    const [first] = params;
    if (method === LOGS) {
      const { blockHash, fromBlock } = first as LogFilter;
      const begin =
        blockHash === undefined ? fromBlock : numberOf(await ask('eth_getBlockByHash', [blockHash, false]));
      return isOld(begin) ? logs : 'none';
    }
    const absence = RECEIPTS.test(method) ? receipts : HEADERS.test(method) ? blocks : undefined;
    if (absence === undefined) return 'none';
    const answer = await forward();
    return isOld(numberOf(answer)) ? absence : answer;
  };
}
