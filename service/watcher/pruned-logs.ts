import { ChainError } from '../base/errors';
import { pause } from '../base/time';
import { Bloom } from '../chain/bloom';
import type { Chain } from '../chain/chain';
import { isAnswer, isBlockAbsent, isDenied, isRefusal } from '../chain/node-errors';
import { blocksAt, headNumberOf, logsOf, type ChainBlock } from '../chain/read-chain';
import { hasReceipts } from '../chain/read-receipts';
import { NEAR_HEAD } from './read-range';

// Nodes remove old blocks, or their logs. A retry brings nothing then.

/** A node that is behind lacks fewer blocks than this. */
const OLD_BLOCKS = 128;

/** How often a block must be gone, and how long apart: a node of several behind a URL may be far behind. */
const [PROBES, PROBE_PAUSE_MS] = [4, 5_000];

/**
 * Asks whether the node has the logs of `block`, or may only be behind.
 *
 * @param options.newest number of the newest block, if it is known.
 * @throws ChainError LOGS_PRUNED if it has removed them.
 */
export async function expectLogs(
  client: Chain,
  registry: string,
  block: number,
  { newest, signal }: { newest?: number; signal?: AbortSignal } = {},
): Promise<void> {
  const headBlock = newest ?? (await headNumberOf(client));
  if (headBlock - block < OLD_BLOCKS) return;
  for (let probe = 1; probe <= PROBES; probe++) {
    const newer = headBlock - NEAR_HEAD;
    if ((await hasLogs(client, registry, block)) || !(await hasLogs(client, registry, newer))) return;
    if (probe < PROBES) await pause(client.time, PROBE_PAUSE_MS, signal);
  }
  let [gone, there] = [block, headBlock];
  while (there - gone > 1) {
    const middle = Math.floor((gone + there) / 2);
    if (await hasLogs(client, registry, middle)) there = middle;
    else gone = middle;
  }
  const remedy =
    `Set RPC_URL to a node that has all blocks from ${block} on, then restart the service. ` +
    `If no earlier event is needed, and none was recorded, START_BLOCK may be ${there}.`;
  const message = `The node has no logs before block ${there}, and block ${block} is to be read. ${remedy}`;
  throw new ChainError('LOGS_PRUNED', message, { remedy });
}

/** Blocks in which one with logs is looked for. */
const PROBED_BLOCKS = 8;

/**
 * Whether the node has the logs of a block. Some nodes answer with no logs where they have removed them: then
 * the receipts tell, of the first block from there on whose header says that it has logs.
 */
async function hasLogs(client: Chain, address: string, block: number): Promise<boolean> {
  const showsLogs = (header: ChainBlock | undefined): header is ChainBlock =>
    header?.isEmpty === false && new Bloom(header).isPresent;
  let shown: ChainBlock | undefined;
  try {
    const numbers = Array.from({ length: PROBED_BLOCKS }, (_, at) => block + at);
    const headers = await blocksAt(client, numbers);
    if (headers[0] === undefined) return false;
    if (!showsLogs(headers[0]))
      await logsOf(client, { address: [address], fromBlock: block, toBlock: block }).catch(unlessRefused);
    shown = headers.find(showsLogs);
    return shown === undefined || (await hasReceipts(client, shown.hash));
  } catch (error) {
    if (isBlockAbsent(error) || (shown !== undefined && isAnswer(error))) return false;
    throw error;
  }
}

/** A node that gives no logs at all is read by receipts. */
function unlessRefused(error: unknown): void {
  if (isBlockAbsent(error) || !(isRefusal(error) || isDenied(error))) throw error;
}
