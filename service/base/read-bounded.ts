/** Reads a body. Undefined if it is longer than `most` bytes; the rest is not read then. */
export async function readBounded(
  body: AsyncIterable<Uint8Array>,
  most: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // To leave the loop ends the body, and closes its connection.
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
