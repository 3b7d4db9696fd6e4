import { headNumberOf } from '../chain/read-chain';
import { mintTopics } from './judge-receipts';
import type { Lane } from './lane-state';
import type { Flight } from './mint';

/** For fewer, their receipts are as cheap. */
const FEWEST = 3;
/** Blocks that every provider answers for. */
const MOST_BLOCKS = 100;

/**
 * The transactions that made the tokens of several flights, by one question for their logs in the blocks since the last time, instead of a receipt each. What
 * it does not tell is open: for that, there are receipts.
 */
export async function readMade(lane: Lane, flights: readonly Flight[]): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  if (flights.length < FEWEST) return made;
  const { headAt } = lane;
  const head = await headNumberOf(lane.client);
  lane.headAt = head;
  if (headAt === undefined || head < headAt || head - headAt >= MOST_BLOCKS) return made;
  const topicsOf = flights.map(({ mint }) => mintTopics(mint.issuance.tokenId));
  const [[transfer, from] = []] = topicsOf;
  const ids = topicsOf.map(([, , id]) => id);
  const blocks = { fromBlock: `0x${headAt.toString(16)}`, toBlock: `0x${head.toString(16)}` };
  const filter = { ...blocks, address: lane.registryAddress, topics: [transfer, from, null, ids] };
  const logs = (await lane.client.send('eth_getLogs', [filter]).catch(() => [])) as MadeLog[];
  for (const { topics, transactionHash } of logs) made.set(String(topics[3]).slice(2), transactionHash);
  return made;
}

interface MadeLog {
  topics: readonly string[];
  transactionHash: string;
}
