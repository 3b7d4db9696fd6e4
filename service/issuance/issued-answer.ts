/**
 * The answer to a request whose token is mined: `{"signedW3CDocument": …, "txHash": "0x…"}`. The document in
 * it is JSON already.
 */
export interface IssuedAnswer {
  /** In bytes. */
  length: number;
  /** UTF-8. */
  chunks: AsyncIterable<Uint8Array>;
}

const HEAD = Buffer.from('{"signedW3CDocument":');

/**
 * Creates the answer without copying or parsing the document.
 *
 * @param document the document's parts, or the whole document as one part.
 * @param length the document's length in bytes.
 */
export function issuedAnswer(
  document: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  length: number,
  txHash: string,
): IssuedAnswer {
  const tail = Buffer.from(`,"txHash":${JSON.stringify(txHash)}}`);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield HEAD;
    yield* document;
    yield tail;
  }
  return { length: HEAD.length + length + tail.length, chunks: chunks() };
}
