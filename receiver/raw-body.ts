import type { IncomingMessage } from 'node:http';

/** Longest accepted body in bytes. An event has about one kilobyte. */
export const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Reads a request's body as the received bytes, undecoded, because the signature covers those. Undefined if
 * there are more than `limit`: the rest is read and dropped, so that the sender can finish writing and see
 * the answer.
 */
export async function readRawBody(
  request: IncomingMessage,
  limit = MAX_BODY_BYTES,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= limit) chunks.push(chunk);
    else chunks.length = 0;
  }
  return length <= limit ? Buffer.concat(chunks) : undefined;
}
