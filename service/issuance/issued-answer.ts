/**
 * The answer to a request whose token is mined, `{"signedW3CDocument": …, "txHash": "0x…"}`, around a
 * document that is JSON already.
 */
export interface IssuedAnswer {
  /** Bytes. */
  length: number;
  /** UTF-8. */
  chunks: AsyncIterable<Uint8Array>;
}

const HEAD = Buffer.from('{"signedW3CDocument":');

/**
 * Makes the answer without copying or parsing the document.
 *
 * @param document its parts: those of a journal, or the whole in one.
 * @param length of the document in bytes.
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
