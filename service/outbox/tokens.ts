import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';

/**
 * The keys of tokens' rows, which are added if they are missing. A token id is decimal, or empty for events
 * of the registry itself: they carry token id 0, and have a queue of their own.
 */
export async function keysOfTokens(
  db: Transaction<Schema>,
  feed: number,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const wanted = [...new Set(tokenIds)];
  const known = await db
    .selectFrom('tokens')
    .select(['id', 'token_id'])
    .where('feed', '=', feed)
    .where('token_id', 'in', wanted)
    .execute();
  const keys = new Map(known.map(({ id, token_id }) => [token_id, id]));
  const missing = wanted.filter((tokenId) => !keys.has(tokenId));
  if (missing.length === 0) return keys;
  const added = await db
    .insertInto('tokens')
    .values(missing.map((token_id) => ({ feed, token_id })))
    .returning(['id', 'token_id'])
    .execute();
  for (const { id, token_id } of added) keys.set(token_id, id);
  return keys;
}
