import { isError } from 'ethers';
import { codeOf } from '../base/errors';
import { createBlockSpan, type BlockSpan } from './block-span';
import { isRangeRefused } from './refusals';

/** Blocks to look at. `onProgress` is told the lowest block that was read, after each query. */
export interface LogRange {
  fromBlock: number;
  toBlock: number;
  onProgress?: (block: number) => void;
}

/**
 * A query that got no answer in all of its time is asked for an eighth the next time: each such try costs
 * half a minute.
 */
const HALVINGS_AFTER_TIMEOUT = 3;

/**
 * Reads a range of blocks from its end: all of it at once, and less only when that is refused.
 *
 * @param read what is in the blocks from `first` to `last`.
 * @param take is given what was read, the newest blocks first; true ends the reading.
 * @returns whether `take` ended it.
 * @throws whatever the node answers for a single block, and when it cannot be reached.
 */
export async function readBackwards<T>(
  { fromBlock, toBlock, onProgress }: LogRange,
  read: (first: number, last: number) => Promise<T>,
  take: (found: T) => boolean,
): Promise<boolean> {
  const span = createBlockSpan(Math.max(1, toBlock - fromBlock + 1));
  for (let last = toBlock; last >= fromBlock;) {
    const first = Math.max(fromBlock, last - span.blocks() + 1);
    const found = await readOrShrink(span, () => read(first, last));
    if (found === undefined) continue;
    if (take(found.read)) return true;
    span.grow();
    last = first - 1;
    onProgress?.(first);
  }
  return false;
}

/** Undefined: the provider refused, and fewer blocks are to be asked for. */
async function readOrShrink<T>(span: BlockSpan, read: () => Promise<T>): Promise<{ read: T } | undefined> {
  try {
    return { read: await read() };
  } catch (error) {
    if (!mayBeForTheRange(error) || !span.shrink()) throw error;
    if (isError(error, 'TIMEOUT')) for (let more = 1; more < HALVINGS_AFTER_TIMEOUT; more++) span.shrink();
    return undefined;
  }
}

/**
 * Providers refuse in words of their own, or cut the connection: any answer that is an error counts, but not
 * that nobody is there.
 */
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
