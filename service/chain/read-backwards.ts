import { isError } from 'ethers';
import { codeOf } from '../base/errors';
import { createBlockSpan, type BlockSpan } from './block-span';
import { isRangeRefused } from './refusals';

/** The blocks to read. `onProgress` is called after each query with the lowest block that was read. */
export interface LogRange {
  fromBlock: number;
  toBlock: number;
  onProgress?: (block: number) => void;
}

/**
 * After a timeout, the next query asks for an eighth of the blocks: each such attempt costs half a minute.
 */
const HALVINGS_AFTER_TIMEOUT = 3;

/**
 * Reads a range of blocks, the newest first. It asks for the whole range at once, and for fewer blocks only
 * after a refusal.
 *
 * @param read reads the blocks from `first` to `last`.
 * @param take receives each result, the newest blocks first; true ends the reading.
 * @returns whether `take` ended it.
 * @throws any error of the node for a single block, and any error when it cannot be reached.
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

/** Undefined when the provider refused; the span is narrower then. */
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
 * Whether the error may be due to the width of the range. Providers refuse in their own words or cut the
 * connection, so any error answer counts. A node that cannot be reached does not.
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

/** Codes of a connection that was open and ended without an answer. */
const CUT = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
