import type { Time } from '../../../service/base/time';
import type { SeededRandom } from '../seeded-random';
import {
  atMostAddresses,
  atMostBlocks,
  atMostCalls,
  atMostLogs,
  BLOOMS,
  both,
  HEADERS,
  IGNORES_HASH,
  LEADING_ZEROS,
  logsByHash,
  randomRefusal,
  RECEIPTS,
  refusalOf,
  refusingBatches,
  refusingLogs,
  WITH_LOGS,
  withBloom,
  withBlockReceipts,
  without,
  WITHOUT_REMOVED,
  type Refusal,
  type RpcError,
} from './node-limits';
import type { Answerer } from './rpc-proxy';
import type { Ask } from './unusual-logs';

// Nodes and providers as their users report them, with values of our own.

/** The parts of a profile. The same seed makes the same profile. */
export interface ProfileParts {
  random: SeededRandom;
  /** The time of limits per second. */
  time: Time;
  /** Asks the node behind the profile. */
  ask: Ask;
}

/** Makes a profile. */
export type NodeProfile = (parts: ProfileParts) => Answerer;

const NEEDS_ADDRESS =
  'Please specify an address in your request or, to remove restrictions, order a full node';

/** Refusals of wide ranges, as users report them: [the provider, the blocks, the answer]. */
const RANGES: [provider: string, blocks: number, refusal: Refusal][] = [
  ['QuickNode', 50, refusalOf({ code: -32_614, message: 'eth_getLogs is limited to a 50 range' }, 413)],
  ['Alchemy', 100, refusalOf({ code: -32_600, message: 'up to a 100 block range. Try [0x1, 0x64]' }, 400)],
  ['BlockPI', 100, refusalOf({ code: -32_602, message: 'eth_getLogs is limited to 100 block range.' })],
  ['Tenderly', 100, refusalOf({ code: -32_602, message: 'invalid params', data: { payload: '1500 > 100' } })],
  ['ankr', 100, refusalOf({ code: -32_005, message: 'block range too large, range: 1500, max: 100' })],
  ['Filecoin', 100, refusalOf({ code: 1, message: 'invalid epoch range' })],
  ['Zilliqa', 100, refusalOf({ code: -32_603, message: 'Unhandled panic in RPC handler eth_getLogs' })],
  ['Cloudflare', 100, refusalOf({ code: -32_046, message: 'Cannot fulfill request' })],
  [
    'a node that speaks of spans',
    100,
    refusalOf({ code: -32_000, message: 'span of 1500 is over 100' }, 400),
  ],
  ['a node that speaks of windows', 100, refusalOf({ code: 35, message: 'window wider than allotted' })],
  ['a node that speaks of distances', 100, refusalOf({ code: -32_000, message: 'distance 1500 > 100' })],
  ['a gateway', 100, refusalOf({ code: 0, message: '' }, 413, '<html>Request Entity Too Large</html>')],
];

/** Errors by which providers say with status 200 that they are asked too often. */
export const RATE_ERRORS: Record<string, RpcError> = {
  'as Alchemy does': { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
  'as QuickNode does': {
    code: -32_007,
    message: '20/second request limit reached - reduce calls per second',
  },
  'as Infura does': {
    code: -32_005,
    message: 'project ID request rate exceeded',
    data: { rate: { allowed_rps: 20, backoff_seconds: 1, current_rps: 25.5 } },
  },
  'by its code alone': { code: -32_097, message: 'limit' },
  'and names the pause': { code: -32_000, message: 'Request refused: try again in 1s' },
};

/** The calls a second of a free plan. */
const CALLS_A_SECOND = 15;

/** Nodes behind which every event arrives, by what a user would say of them. */
export const NODE_PROFILES: Record<string, NodeProfile> = {
  'gives logs only with an address, as PublicNode does': () =>
    atMostAddresses(Infinity, refusalOf({ code: -32_701, message: NEEDS_ADDRESS })),
  'gives logs only with an address, and says so in its own words': ({ random }) =>
    atMostAddresses(Infinity, randomRefusal(random)),
  'gives logs of two addresses at most, as nodes say whose limit is low': () =>
    atMostAddresses(2, refusalOf({ code: -32_000, message: 'exceed max addresses per search position' })),
  'gives logs of few addresses at most, and says so in its own words': ({ random }) =>
    atMostAddresses(1 + random.below(3), randomRefusal(random)),
  'allows ten blocks without an address and many with one, as dRPC does': () =>
    atMostBlocks(10_000, refusalOf({ code: 35, message: 'ranges over 10 blocks: not on freetier' }, 400), 10),
  'allows other ranges with an address than without, in its own words': ({ random }) =>
    atMostBlocks(100 + random.below(400), randomRefusal(random), 20 + random.below(60)),
  'allows short ranges, and says so in its own words': ({ random }) =>
    atMostBlocks(40 + random.below(200), randomRefusal(random)),
  ...Object.fromEntries(
    RANGES.map(([provider, blocks, refusal]) => [
      `allows ${blocks} blocks, as ${provider} says`,
      () => atMostBlocks(blocks, refusal),
    ]),
  ),
  'gives ten logs at most, as Infura says': () =>
    atMostLogs(10, refusalOf({ code: -32_005, message: 'query returned more than 10 results' })),
  'gives few logs at most, and says so in its own words': ({ random }) =>
    atMostLogs(3 + random.below(10), randomRefusal(random)),
  'has no eth_getLogs': () =>
    refusingLogs(() => true, refusalOf({ code: -32_601, message: 'Method not found' })),
  'has no eth_getLogs, and gives the receipts of blocks': ({ ask, random }) =>
    both(
      withBlockReceipts(ask),
      refusingLogs(() => true, randomRefusal(random)),
    ),
  'has turned eth_getLogs off, and speaks of a limit': () =>
    refusingLogs(() => true, refusalOf({ code: -32_005, message: 'limit exceeded' })),
  'forbids eth_getLogs alone, with status 403': () =>
    refusingLogs(() => true, refusalOf({ code: 0, message: '' }, 403, '<html>403 Forbidden</html>')),
  'gives the newest block for any hash in a filter of logs': () => IGNORES_HASH,
  'knows no logs of a hash': () =>
    logsByHash(refusalOf({ code: -32_602, message: 'unknown field blockHash' })),
  'says of the logs of a hash that ranges are limited': () =>
    logsByHash(refusalOf({ code: -32_602, message: 'logs are limited to a 10000 block range' })),
  'knows no logs of a hash, and says so in its own words': ({ random }) => logsByHash(randomRefusal(random)),
  'allows 15 calls a second, and answers others with a page and 429': ({ time }) =>
    atMostCalls(CALLS_A_SECOND, time, refusalOf({ code: 0, message: '' }, 429, '<html>slow down</html>')),
  'allows 15 calls a second, and says so inside of status 200': ({ time, random }) =>
    atMostCalls(CALLS_A_SECOND, time, { error: random.pick(Object.values(RATE_ERRORS)) }),
  'refuses batches with one error for all': () =>
    refusingBatches({
      status: 200,
      body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"batch limit 1 exceeded"}}',
    }),
  'refuses batches with status 403': () => refusingBatches({ status: 403, body: 'no batches' }),
  // A node that cannot mark a log as removed gives none that is.
  'gives logs without "removed" and "blockTimestamp"': () =>
    both(without(WITH_LOGS, 'removed', 'blockTimestamp'), WITHOUT_REMOVED),
  'gives headers without "logsBloom"': () => without(HEADERS, 'logsBloom'),
  'gives headers whose "logsBloom" is all zeroes': () => withBloom(BLOOMS.zeroes),
  'gives headers whose "logsBloom" is empty': () => withBloom(BLOOMS.empty),
  'gives headers whose "logsBloom" is full': () => withBloom(BLOOMS.full),
  'gives headers without "baseFeePerGas"': () => without(HEADERS, 'baseFeePerGas'),
  'gives receipts without "effectiveGasPrice" and "type"': () =>
    without(RECEIPTS, 'effectiveGasPrice', 'type'),
  'gives the receipts of blocks': ({ ask }) => withBlockReceipts(ask),
  'gives numbers with leading zeros': () => LEADING_ZEROS,
};

/** Habits that a model of a short chain may give each of its nodes. */
const HABITS: Record<string, NodeProfile> = {
  ...Object.fromEntries(
    Object.entries(NODE_PROFILES).filter(([name]) => !/calls a second|eth_getLogs|at most|blocks/.test(name)),
  ),
  'allows ranges of few blocks, and says so in its own words': ({ random }) =>
    atMostBlocks(1 + random.below(6), randomRefusal(random)),
};

/** A node with one or two random habits. */
export function drawNode(parts: ProfileParts): { name: string; answerer: Answerer } {
  const { random } = parts;
  const names = Object.keys(HABITS);
  const drawn = Array.from({ length: 1 + random.below(2) }, () => random.pick(names));
  const answerers = drawn.flatMap((name) => HABITS[name]?.(parts) ?? []);
  return { name: drawn.join(', and '), answerer: answerers.reduce(both) };
}
