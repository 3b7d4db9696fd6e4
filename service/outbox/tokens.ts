import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';

/** Tokens per statement: both engines limit the parameters. */
const BATCH = 200;

/**
 * The keys of tokens' rows, which are added if they are missing. A token id is decimal, or empty for events
 * of the registry itself: they carry token id 0, and have a queue of their own.
 */
export async function keysOfTokens(
  db: Transaction<Schema>,
  feed: number,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const keys = new Map<string, number>();
  const all = [...new Set(tokenIds)];
  for (let from = 0; from < all.length; from += BATCH) {
    const wanted = all.slice(from, from + BATCH);
    const known = await db
      .selectFrom('tokens')
      .select(['id', 'token_id'])
      .where('feed', '=', feed)
      .where('token_id', 'in', wanted)
      .execute();
    for (const { id, token_id } of known) keys.set(token_id, id);
    const missing = wanted.filter((tokenId) => !keys.has(tokenId));
    if (missing.length === 0) continue;
    const added = await db
      .insertInto('tokens')
      .values(missing.map((token_id) => ({ feed, token_id })))
      .returning(['id', 'token_id'])
      .execute();
    for (const { id, token_id } of added) keys.set(token_id, id);
  }
  return keys;
}

/**
 * The key of a row that was read or added.
 *
 * @throws Error if there is none: a delivery without its event or token would be claimed for ever.
 */
export function keyIn(keys: ReadonlyMap<string, number>, name: string): number {
  const key = keys.get(name);
  if (key === undefined) throw new Error(`The database gave no key for the row of ${name}`);
  return key;
}
