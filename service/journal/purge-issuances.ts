import type { Kysely } from 'kysely';
import { untilNothingIsLeft } from '../database/batches';
import type { Schema } from '../database/schema';
import { dropDocuments, removeUnfinished } from './documents';

/** Issuances per transaction. It is small because a running service waits for each transaction. */
const BATCH = 100;

/**
 * Removes issuances that ended before a time (epoch milliseconds), and documents that were only partly
 * stored. It ends early when the signal aborts.
 *
 * @returns the number of removed issuances.
 */
export async function purgeIssuances(
  db: Kysely<Schema>,
  scope: string,
  { endedBefore, now, signal }: { endedBefore: number; now: number; signal: AbortSignal | undefined },
): Promise<number> {
  let removed = 0;
  await untilNothingIsLeft(async () => {
    const ended = await db
      .selectFrom('issuances')
      .select('token_id')
      .where('scope', '=', scope)
      .where('ended_at', '<', endedBefore)
      .orderBy('ended_at')
      .limit(BATCH)
      .execute();
    const tokenIds = ended.map(({ token_id }) => token_id);
    if (tokenIds.length > 0) removed += await removeRows(db, scope, tokenIds, endedBefore);
    // Another process may have removed them meanwhile, and left others.
    return tokenIds.length;
  }, signal);
  if (!signal?.aborted) await removeUnfinished(db, scope, now);
  return removed;
}

/** Removes one issuance that is final or failed, whatever its age, with its document. */
export async function removeIssuance(
  db: Kysely<Schema>,
  scope: string,
  tokenId: string,
  now: number,
): Promise<'removed' | 'unfinished' | 'unknown'> {
  const row = await db
    .selectFrom('issuances')
    .select('ended_at')
    .where('scope', '=', scope)
    .where('token_id', '=', tokenId)
    .executeTakeFirst();
  if (row === undefined) return 'unknown';
  if (row.ended_at === null) return 'unfinished';
  await removeRows(db, scope, [tokenId], Number.MAX_SAFE_INTEGER);
  await removeUnfinished(db, scope, now);
  return 'removed';
}

/**
 * Deletes the rows and notes the documents whose parts are to be deleted, in one transaction, so a crash
 * leaves no issuance without its document.
 */
async function removeRows(
  db: Kysely<Schema>,
  scope: string,
  tokenIds: readonly string[],
  endedBefore: number,
): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    const gone = await transaction
      .deleteFrom('issuances')
      .where('scope', '=', scope)
      .where('token_id', 'in', tokenIds)
      .where('ended_at', '<', endedBefore)
      .returning(['token_id', 'document_bytes'])
      .execute();
    if (gone.length === 0) return 0;
    const goneIds = gone.map(({ token_id }) => token_id);
    await transaction
      .deleteFrom('mint_transactions')
      .where('scope', '=', scope)
      .where('token_id', 'in', goneIds)
      .execute();
    await dropDocuments(transaction, scope, gone);
    return gone.length;
  });
}
