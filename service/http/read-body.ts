import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBrotliDecompress, createUnzip } from 'node:zlib';

/** Why a body could not be read. */
export class BodyProblem extends Error {
  readonly problem: 'aborted' | 'too slow' | 'too large' | 'wrongly encoded' | 'unknown encoding';

  constructor(problem: BodyProblem['problem'], cause?: unknown) {
    super(`the body is ${problem}`, { cause });
    this.problem = problem;
  }
}

/** The least number of bytes that a body brings in each interval, until it is complete. */
export interface LeastRate {
  /** As they come, not as they decode. */
  bytes: number;
  /** Milliseconds. */
  withinMs: number;
}

/**
 * Reads a request's body, decoded from its Content-Encoding (gzip, deflate, br), into bytes that share their
 * memory with nothing.
 *
 * @param limit most bytes, of what is decoded.
 * @param onChunk is given the decoded bytes as they come.
 * @throws BodyProblem. The request goes on then; whoever answers decides what becomes of the rest.
 */
export async function readBody(
  request: IncomingMessage,
  limit: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const source = decoded(request);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    await new Promise<void>((resolve, reject) => {
      source.on('data', (chunk: Uint8Array) => {
        length += chunk.length;
        if (length > limit) return reject(new BodyProblem('too large'));
        chunks.push(chunk);
        onChunk(chunk);
      });
      source.on('end', resolve);
      if (source !== request)
        source.on('error', (cause) => reject(new BodyProblem('wrongly encoded', cause)));
      // Also when it closed before anybody read it, as a caller does who does not want to wait.
      const abort = (): void => reject(new BodyProblem('aborted'));
      if (request.destroyed && !request.complete) abort();
      request.on('close', () => {
        if (!request.complete) abort();
      });
    });
  } finally {
    if (source !== request) {
      request.unpipe();
      source.destroy();
    }
    source.removeAllListeners('data');
  }
  return joined(chunks);
}

/**
 * Waits for a body that is being read, as long as enough of it comes.
 *
 * @throws BodyProblem too slow; what the reading throws.
 */
export async function atLeastRate<T>(
  request: IncomingMessage,
  { bytes, withinMs }: LeastRate,
  reading: Promise<T>,
): Promise<T> {
  const { socket } = request;
  let before = socket.bytesRead;
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    const look = (): void => {
      if (!request.complete && socket.bytesRead - before < bytes) {
        // What else comes is kept by nobody.
        request.removeAllListeners('data').resume();
        reject(new BodyProblem('too slow'));
      }
      before = socket.bytesRead;
    };
    // Only when what came while this process was busy has been read.
    timer = setInterval(() => setImmediate(look), withinMs);
  });
  try {
    return await Promise.race([reading, tooSlow]);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Corrupt input is an error of the decoder's; the request itself goes on. Small or capital letters are the
 * same in the name of an encoding (RFC 9110, section 8.4.1).
 */
function decoded(request: IncomingMessage): Readable {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding === 'identity') return request;
  if (encoding === 'gzip' || encoding === 'deflate') return request.pipe(createUnzip());
  if (encoding === 'br') return request.pipe(createBrotliDecompress());
  throw new BodyProblem('unknown encoding');
}

/**
 * Copied 40 MB at once, with memory that the system first has to find, a body kept everybody else waiting for
 * up to 190 ms.
 */
const COPIED_AT_ONCE = 1024 * 1024;

/**
 * Puts chunks together in memory that is shared with nothing. Lets the event loop do something else between
 * the pieces.
 */
export async function joined(chunks: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let offset = 0;
  let nextPause = COPIED_AT_ONCE;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
    if (offset < nextPause) continue;
    nextPause = offset + COPIED_AT_ONCE;
    await nextTurn();
  }
  return bytes;
}
