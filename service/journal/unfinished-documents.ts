import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { ServiceError } from '../base/errors';
import { removeParts, type DocumentKey } from './document-parts';

/** Storing a document never takes this long. A process that began one earlier has died. */
const LONGEST_STORING_MS = 3_600_000;

/** Documents per query. */
const BATCH = 100;

/**
 * Notes a document whose parts are stored before its issuance. The note finds the parts if the issuance never
 * follows.
 */
export async function beginStoring(
  db: Kysely<Schema>,
  { scope, tokenId }: DocumentKey,
  now: number,
): Promise<void> {
  await db.insertInto('loose_documents').values({ scope, token_id: tokenId, begun_at: now }).execute();
}

/**
 * Ends the storing of a document, in the transaction that inserts its issuance. Only one of this and
 * `removeUnfinished` finds the row with a `begun_at`.
 *
 * @throws ServiceError STORING_INTERRUPTED when another process took the document for one that a crash left.
 */
export async function endStoring(db: Kysely<Schema>, { scope, tokenId }: DocumentKey): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('loose_documents')
    .where('scope', '=', scope)
    .where('token_id', '=', tokenId)
    .where('begun_at', 'is not', null)
    .executeTakeFirst();
  if (numDeletedRows === 1n) return;
  const message = `Storing the document of token ${tokenId} took so long that its parts were removed.`;
  throw new ServiceError('STORING_INTERRUPTED', message, { retryable: true });
}

/**
 * Gives up a document that will not get an issuance, and removes its parts, including parts stored after
 * another process removed the earlier ones. A document that has its issuance by now stays; the update waits
 * for the transaction that inserts it.
 */
export async function giveUpStoring(db: Kysely<Schema>, key: DocumentKey): Promise<void> {
  await db
    .updateTable('loose_documents')
    .set({ begun_at: null })
    .where('scope', '=', key.scope)
    .where('token_id', '=', key.tokenId)
    .execute();
  await removeDocument(db, key);
}

/** Marks documents whose parts the next `removeUnfinished` removes. */
export async function markUnfinished(
  db: Kysely<Schema>,
  scope: string,
  tokenIds: readonly string[],
): Promise<void> {
  if (tokenIds.length === 0) return;
  const rows = tokenIds.map((tokenId) => ({ scope, token_id: tokenId, begun_at: null }));
  await db
    .insertInto('loose_documents')
    .values(rows)
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
  for (;;) {
    const unfinished = await db
      .selectFrom('loose_documents')
      .select('token_id')
      .where('scope', '=', scope)
      .where('begun_at', 'is', null)
      .orderBy('token_id')
      .limit(BATCH)
      .execute();
    if (unfinished.length === 0) return;
    for (const { token_id } of unfinished) await removeDocument(db, { scope, tokenId: token_id });
  }
}

/**
 * Removes a document's parts, then its note, so an interrupted removal continues the next time. If a document
 * was added twice, it may be noted again after it got its issuance; its parts stay unless that issuance
 * failed.
 */
async function removeDocument(db: Kysely<Schema>, key: DocumentKey): Promise<void> {
  const { scope, tokenId } = key;
  const issuance = await db
    .selectFrom('issuances')
    .select('token_id')
    .where('scope', '=', scope)
    .where('token_id', '=', tokenId)
    .where('state', '!=', 'failed')
    .executeTakeFirst();
  if (issuance === undefined) await removeParts(db, key);
  await db.deleteFrom('loose_documents').where('scope', '=', scope).where('token_id', '=', tokenId).execute();
}
