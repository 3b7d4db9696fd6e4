import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { ServiceError } from '../base/errors';
import { removeParts, type DocumentKey } from './document-parts';

/** Nobody stores a document for so long: whoever began it earlier has died. */
const LONGEST_STORING_MS = 3_600_000;

/** Documents of one reading. */
const BATCH = 100;

/** Notes that a document gets parts before its issuance, so that they are found when it never gets one. */
export async function beginStoring(
  db: Kysely<Schema>,
  { scope, tokenId }: DocumentKey,
  now: number,
): Promise<void> {
  await db.insertInto('loose_documents').values({ scope, token_id: tokenId, begun_at: now }).execute();
}

/**
 * In the transaction that makes the issuance: its document is finished now. This and the removal cannot
 * both find the row as it was.
 *
 * @throws ServiceError STORING_INTERRUPTED when somebody took the document for one that a crash had left.
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
 * Nobody makes this document's issuance any more: its parts go at once, also those that were stored after
 * somebody else had removed the earlier ones. What has its issuance by now stays; the update waits for the
 * transaction that makes it.
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

/** Documents whose parts are to be removed; the next `removeUnfinished` does it. */
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

/**
 * Removes the parts of documents that were given up, and of those that a process left half stored when it
 * died.
 */
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
 * The note goes last: what is interrupted here is gone on with at the next time. A document that was added
 * twice is noted once more after it had its issuance: its parts stay, unless the issuance failed.
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
