import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { ServiceError } from '../base/errors';

/** Identifies the document of one issuance. */
export interface DocumentKey {
  scope: string;
  tokenId: string;
}

/**
 * Bytes of one part, which one statement stores. SQLite blocks the event loop for about 1 ms per part, and
 * for 6 to 10 ms at a checkpoint of the write-ahead log. PostgreSQL's driver copies each part several times.
 */
export const PART_BYTES = 256 * 1024;

/** Parts that one statement deletes. */
const DELETED_AT_ONCE = 8;

/** Splits a document into parts, which are views of its bytes. There is always at least one. */
export function partsOf(document: Uint8Array): Uint8Array[] {
  const count = Math.max(1, Math.ceil(document.length / PART_BYTES));
  return Array.from({ length: count }, (_, part) =>
    document.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
  );
}

export async function storePart(
  db: Kysely<Schema>,
  { scope, tokenId }: DocumentKey,
  part: number,
  bytes: Uint8Array,
): Promise<void> {
  await db.insertInto('document_parts').values({ scope, token_id: tokenId, part, bytes }).execute();
}

/** Stores the first parts of a document, and yields to the event loop after each. */
export async function storeParts(
  db: Kysely<Schema>,
  key: DocumentKey,
  parts: readonly Uint8Array[],
): Promise<void> {
  for (const [part, bytes] of parts.entries()) {
    await storePart(db, key, part, bytes);
    await nextTurn();
  }
}

/**
 * Reads the parts of a document, one at a time.
 *
 * @param length of the whole document in bytes.
 * @throws ServiceError DOCUMENT_INCOMPLETE when parts are missing, as when the document is purged meanwhile.
 */
export async function* readParts(
  db: Kysely<Schema>,
  { scope, tokenId }: DocumentKey,
  length: number,
): AsyncGenerator<Uint8Array> {
  for (let part = 0, read = 0; read < length; part++) {
    const row = await db
      .selectFrom('document_parts')
      .select('bytes')
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .where('part', '=', part)
      .executeTakeFirst();
    if (row === undefined) throw incomplete(tokenId, read, length);
    const bytes = row.bytes instanceof ArrayBuffer ? new Uint8Array(row.bytes) : row.bytes;
    yield bytes;
    read += bytes.length;
    await nextTurn();
  }
}

/** Removes all parts of a document, a few at a time. */
export async function removeParts(db: Kysely<Schema>, { scope, tokenId }: DocumentKey): Promise<void> {
  for (;;) {
    const some = await db
      .selectFrom('document_parts')
      .select('part')
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .orderBy('part')
      .limit(DELETED_AT_ONCE)
      .execute();
    const last = some.at(-1);
    if (last === undefined) return;
    await db
      .deleteFrom('document_parts')
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .where('part', '<=', last.part)
      .execute();
    await nextTurn();
  }
}

function incomplete(tokenId: string, read: number, length: number): ServiceError {
  const message = `The document of token ${tokenId} ends after ${read} of ${length} bytes.`;
  return new ServiceError('DOCUMENT_INCOMPLETE', message);
}
