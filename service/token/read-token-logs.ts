import { isError, toBeHex } from 'ethers';
import { logsOf, type ChainLog } from '../chain/read-chain';
import { isRangeRefused } from '../chain/refusals';
import type { RpcClient } from '../chain/rpc-client';
import { codeOf } from '../errors';
import { createBlockSpan, type BlockSpan } from '../watcher/block-span';
import type { DecodedLog } from '../watcher/decode-log';
import { titleEscrowAddress, type RegistryContracts } from '../watcher/genuine-emitter';
import { genuineOf } from '../watcher/read-range';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../watcher/registry-topics';

/** The genuine logs of one token, in chain order. */
export interface TokenLogs {
  logs: DecodedLog[];
  /** Whether they begin with the mint: nothing of the token is earlier. */
  isWhole: boolean;
}

/** Blocks to look at. `onProgress` is told the lowest block that was read, after each query. */
export interface LogRange {
  fromBlock: number;
  toBlock: number;
  onProgress?: (block: number) => void;
}

/** A query that got no answer in all of its time is asked for an eighth the next time: each such try costs half a minute. */
const HALVINGS_AFTER_TIMEOUT = 3;

/**
 * Reads all logs of one token. Nodes have an index by address and topic, so that the whole range is asked for at once, and less only when that
 * is refused. From the newest block backwards: the mint ends the search, and most tokens that somebody asks about are young.
 *
 * @throws whatever the node answers for a single block, and when it cannot be reached.
 */
export async function readTokenLogs(
  client: RpcClient,
  contracts: RegistryContracts,
  tokenId: bigint,
  { fromBlock, toBlock, onProgress }: LogRange,
): Promise<TokenLogs> {
  const span = createBlockSpan(Math.max(1, toBlock - fromBlock + 1));
  const logs: DecodedLog[] = [];
  for (let last = toBlock; last >= fromBlock;) {
    const first = Math.max(fromBlock, last - span.blocks() + 1);
    const read = await readOrShrink(span, () => logsOfRange(client, contracts, tokenId, first, last));
    if (read === undefined) continue;
    logs.unshift(...genuineOf(read, contracts).filter((log) => log.tokenId === tokenId));
    if (logs.some(({ type }) => type === 'minted')) return { logs, isWhole: true };
    span.grow();
    last = first - 1;
    onProgress?.(first);
  }
  return { logs, isWhole: false };
}

/** By the escrow's address, and by the token's id, which is the last of the topics in the registry's and the factory's events. */
async function logsOfRange(
  client: RpcClient,
  contracts: RegistryContracts,
  tokenId: bigint,
  fromBlock: number,
  toBlock: number,
): Promise<ChainLog[]> {
  const blocks = { fromBlock, toBlock };
  const escrow = titleEscrowAddress(contracts, tokenId);
  const [own, escrows] = await Promise.all([
    logsOf(client, {
      ...blocks,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: REGISTRY_AND_FACTORY_TOPICS,
      fourthTopic: toBeHex(tokenId, 32),
    }),
    logsOf(client, { ...blocks, address: [escrow], topics: ESCROW_TOPICS }),
  ]);
  return [...own, ...escrows];
}

/** Undefined: the provider refused, and fewer blocks are to be asked for. */
async function readOrShrink(
  span: BlockSpan,
  read: () => Promise<ChainLog[]>,
): Promise<ChainLog[] | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!mayBeForTheRange(error) || !span.shrink()) throw error;
    if (isError(error, 'TIMEOUT')) for (let more = 1; more < HALVINGS_AFTER_TIMEOUT; more++) span.shrink();
    return undefined;
  }
}

/** Providers refuse in words of their own, or cut the connection: any answer that is an error counts, but not that nobody is there. */
function mayBeForTheRange(error: unknown): boolean {
  return (
    isRangeRefused(error) ||
    isError(error, 'TIMEOUT') ||
    isError(error, 'SERVER_ERROR') ||
    isError(error, 'UNKNOWN_ERROR') ||
    CUT.has(codeOf(error) ?? '')
  );
}

/** The connection was there, and ended without an answer. */
const CUT = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
