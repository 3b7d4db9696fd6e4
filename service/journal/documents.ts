import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Insertable, Kysely } from 'kysely';
import { ServiceError } from '../base/errors';
import { untilNothingIsLeft } from '../database/batches';
import { compiled } from '../database/compiled';
import type { DocumentPartsTable, IssuancesTable, Schema } from '../database/schema';
import type { DocumentBytes } from './issuance';
import { issuancesIn } from './read-issuances';

// A document is stored in parts. A long one is noted in `loose_documents` before its first part is stored,
// and again before its parts are removed, so that a crash leaves no part that nothing finds.

/** Names the rows of one issuance, in each table. */
export type RowsKey = Pick<IssuancesTable, 'scope' | 'token_id'>;

/**
 * Bytes of one part, which one statement stores. SQLite blocks the event loop for about 1 ms per part, and
 * for 6 to 10 ms at a checkpoint of the write-ahead log. PostgreSQL's driver copies each part several times.
 */
const PART_BYTES = 256 * 1024;

/** Parts that one statement deletes. */
const DELETED_AT_ONCE = 8;

/** Storing a document never takes this long. A process that began one earlier has died. */
const LONGEST_STORING_MS = 3_600_000;

/** Documents per query. */
const BATCH = 100;

/** Splits a document into parts, which are views of its bytes. There is always at least one. */
export function partsOf(document: Uint8Array): Uint8Array[] {
  const count = Math.max(1, Math.ceil(document.length / PART_BYTES));
  return Array.from({ length: count }, (_, part) =>
    document.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
  );
}

export const storePart = compiled((db, part: Insertable<DocumentPartsTable>) =>
  db.insertInto('document_parts').values(part),
);

/** The document of an issuance. Undefined when the token has no issuance. */
export async function documentOf(db: Kysely<Schema>, key: RowsKey): Promise<DocumentBytes | undefined> {
  const row = await issuancesIn(db, key.scope).where('token_id', '=', key.token_id).executeTakeFirst();
  if (row === undefined) return undefined;
  const length = row.document_bytes;
  return { length, parts: { [Symbol.asyncIterator]: () => readParts(db, key, length) } };
}

/**
 * Reads the parts of a document, one at a time.
 *
 * @param length of the whole document in bytes.
 * @throws ServiceError DOCUMENT_INCOMPLETE when parts are missing, as when the document is purged meanwhile.
 */
async function* readParts(db: Kysely<Schema>, key: RowsKey, length: number): AsyncGenerator<Uint8Array> {
  for (let part = 0, read = 0; read < length; part++) {
    const row = await db
      .selectFrom('document_parts')
      .select('bytes')
      .where((eb) => eb.and({ ...key, part }))
      .executeTakeFirst();
    if (row === undefined) {
      const message = `The document of token ${key.token_id} ends after ${read} of ${length} bytes.`;
      throw new ServiceError('DOCUMENT_INCOMPLETE', message);
    }
    const bytes = row.bytes instanceof ArrayBuffer ? new Uint8Array(row.bytes) : row.bytes;
    yield bytes;
    read += bytes.length;
    await nextTurn();
  }
}

/**
 * Notes a document whose parts are stored before its issuance. The note finds the parts if the issuance never
 * follows.
 */
export async function beginStoring(db: Kysely<Schema>, key: RowsKey, now: number): Promise<void> {
  await db
    .insertInto('loose_documents')
    .values({ ...key, begun_at: now })
    .execute();
}

/**
 * Ends the storing of a document, in the transaction that inserts its issuance. Only one of this and
 * `removeUnfinished` finds the row with a `begun_at`.
 *
 * @throws ServiceError STORING_INTERRUPTED when another process took the document for one that a crash left.
 */
export async function endStoring(db: Kysely<Schema>, key: RowsKey): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('loose_documents')
    .where((eb) => eb.and(key))
    .where('begun_at', 'is not', null)
    .executeTakeFirst();
  if (numDeletedRows === 1n) return;
  const message = `Storing the document of token ${key.token_id} took so long that its parts were removed.`;
  throw new ServiceError('STORING_INTERRUPTED', message);
}

/**
 * Gives up a document that will not get an issuance, and removes its parts, including parts stored after
 * another process removed the earlier ones. A document that has its issuance by now stays; the update waits
 * for the transaction that inserts it.
 */
export async function giveUpStoring(db: Kysely<Schema>, key: RowsKey): Promise<void> {
  await db
    .updateTable('loose_documents')
    .set({ begun_at: null })
    .where((eb) => eb.and(key))
    .execute();
  await removeDocument(db, key);
}

/**
 * Removes the documents of issuances that end, in their transaction. Documents of one part are deleted here:
 * a commit for each would take most of the time (20 s for 3,000). The others are marked, and the next
 * `removeUnfinished` removes their parts.
 */
export async function dropDocuments(
  db: Kysely<Schema>,
  scope: string,
  documents: readonly { token_id: string; document_bytes: number }[],
): Promise<void> {
  const isShort = ({ document_bytes }: { document_bytes: number }): boolean => document_bytes <= PART_BYTES;
  const short = documents.filter(isShort).map(({ token_id }) => token_id);
  const long = documents.filter((document) => !isShort(document));
  if (short.length > 0)
    await db.deleteFrom('document_parts').where('scope', '=', scope).where('token_id', 'in', short).execute();
  if (long.length > 0)
    await db
      .insertInto('loose_documents')
      .values(long.map(({ token_id }) => ({ scope, token_id, begun_at: null })))
      .onConflict((conflict) => conflict.columns(['scope', 'token_id']).doUpdateSet({ begun_at: null }))
      .execute();
}

/** Removes the parts of marked documents, and of those that a process left partly stored when it died. */
export async function removeUnfinished(db: Kysely<Schema>, scope: string, now: number): Promise<void> {
  await db
    .updateTable('loose_documents')
    .set({ begun_at: null })
    .where('scope', '=', scope)
    .where('begun_at', '<', now - LONGEST_STORING_MS)
    .execute();
  await untilNothingIsLeft(async () => {
    const unfinished = await db
      .selectFrom('loose_documents')
      .select('token_id')
      .where('scope', '=', scope)
      .where('begun_at', 'is', null)
      .orderBy('token_id')
      .limit(BATCH)
      .execute();
    for (const { token_id } of unfinished) await removeDocument(db, { scope, token_id });
    return unfinished.length;
  });
}

/**
 * Removes a document's parts, then its note, so an interrupted removal continues the next time. If a document
 * was added twice, it may be noted again after it got its issuance; its parts stay unless that issuance
 * failed.
 */
async function removeDocument(db: Kysely<Schema>, key: RowsKey): Promise<void> {
  const issuance = await issuancesIn(db, key.scope)
    .where('token_id', '=', key.token_id)
    .where('state', '!=', 'failed')
    .executeTakeFirst();
  if (issuance === undefined) await untilNothingIsLeft(() => removeSomeParts(db, key));
  await db
    .deleteFrom('loose_documents')
    .where((eb) => eb.and(key))
    .execute();
}

/**
 * Removes the first parts of a document. Returns how many it found: another process may have removed them
 * meanwhile, and left others.
 */
async function removeSomeParts(db: Kysely<Schema>, key: RowsKey): Promise<number> {
  const some = await db
    .selectFrom('document_parts')
    .select('part')
    .where((eb) => eb.and(key))
    .orderBy('part')
    .limit(DELETED_AT_ONCE)
    .execute();
  const last = some.at(-1);
  if (last !== undefined)
    await db
      .deleteFrom('document_parts')
      .where((eb) => eb.and(key))
      .where('part', '<=', last.part)
      .execute();
  return some.length;
}
