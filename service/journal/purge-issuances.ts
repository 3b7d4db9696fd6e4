import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { PART_BYTES } from './document-parts';
import type { Removal } from './journal';
import { markUnfinished, removeUnfinished } from './unfinished-documents';

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
  let total = 0;
  for (;;) {
    if (signal?.aborted) return total;
    const ended = await db
      .selectFrom('issuances')
      .select('token_id')
      .where('scope', '=', scope)
      .where('ended_at', '<', endedBefore)
      .orderBy('ended_at')
      .limit(BATCH)
      .execute();
    if (ended.length === 0) break;
    const tokenIds = ended.map(({ token_id }) => token_id);
    total += await removeRows(db, scope, tokenIds, endedBefore);
    await nextTurn();
  }
  await removeUnfinished(db, scope, now);
  return total;
}

/** Removes one issuance that is final or failed, whatever its age. */
export async function removeIssuance(
  db: Kysely<Schema>,
  scope: string,
  tokenId: string,
  now: number,
): Promise<Removal> {
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
 * leaves no issuance without its document. Documents of one part are deleted in the same transaction: a
 * commit for each would take most of the time (20 s for 3,000).
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
    const long = gone.filter(({ document_bytes }) => document_bytes > PART_BYTES);
    const short = gone.filter(({ document_bytes }) => document_bytes <= PART_BYTES);
    await removeOf(transaction, 'mint_transactions', scope, gone.map(tokenIdOf));
    await removeOf(transaction, 'document_parts', scope, short.map(tokenIdOf));
    await markUnfinished(transaction, scope, long.map(tokenIdOf));
    return gone.length;
  });
}

function tokenIdOf({ token_id }: { token_id: string }): string {
  return token_id;
}

async function removeOf(
  db: Kysely<Schema>,
  table: 'mint_transactions' | 'document_parts',
  scope: string,
  tokenIds: readonly string[],
): Promise<void> {
  if (tokenIds.length === 0) return;
  await db.deleteFrom(table).where('scope', '=', scope).where('token_id', 'in', tokenIds).execute();
}
