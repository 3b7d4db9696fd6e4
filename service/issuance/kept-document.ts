import type { Journal } from '../journal/journal';
import { ServiceError } from '../base/errors';

/** A signed credential as JSON in UTF-8. `length` is in bytes. The parts can be read more than once. */
export interface DocumentBytes {
  length: number;
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

type Kept = Pick<Journal, 'documentLength' | 'documentOf'>;

/** Reads a document from the journal, anew for each reader, because it may answer several callers. */
export function partsKept(journal: Kept, tokenId: string): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => journal.documentOf(tokenId)[Symbol.asyncIterator]() };
}

/**
 * Reads a document of the journal.
 *
 * @throws ServiceError ISSUANCE_UNKNOWN when it was removed meanwhile.
 */
export async function keptDocument(journal: Kept, tokenId: string): Promise<DocumentBytes> {
  const length = await journal.documentLength(tokenId);
  if (length !== undefined) return { length, parts: partsKept(journal, tokenId) };
  throw new ServiceError('ISSUANCE_UNKNOWN', `The document of token ${tokenId} was removed meanwhile.`);
}
