import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { issuanceOf } from './find-issuance';
import type { MintTransaction, Unfinished } from './issuance';

/** Tokens of one statement. */
const BATCH = 200;

/** What is neither mined nor failed, in the order in which it was added, each with its transactions, the oldest first. */
export async function unfinishedIssuances(db: Kysely<Schema>, scope: string): Promise<Unfinished[]> {
  const rows = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where('ended_at', 'is', null)
    .orderBy('position')
    .orderBy('created_at')
    .orderBy('token_id')
    .execute();
  const transactions = await transactionsOf(
    db,
    scope,
    rows.map(({ token_id }) => token_id),
  );
  return rows.map((row) => ({
    issuance: issuanceOf(row),
    transactions: transactions.get(row.token_id) ?? [],
  }));
}

/** By token, the oldest first. */
async function transactionsOf(
  db: Kysely<Schema>,
  scope: string,
  tokenIds: readonly string[],
): Promise<Map<string, MintTransaction[]>> {
  const byToken = new Map<string, MintTransaction[]>();
  for (let from = 0; from < tokenIds.length; from += BATCH) {
    const rows = await db
      .selectFrom('mint_transactions')
      .selectAll()
      .where('scope', '=', scope)
      .where('token_id', 'in', tokenIds.slice(from, from + BATCH))
      .execute();
    // Asked for in order, SQLite would read all transactions that there ever were.
    rows.sort((left, right) => left.position - right.position);
    for (const { token_id: tokenId, hash, nonce, raw } of rows)
      byToken.set(tokenId, [...(byToken.get(tokenId) ?? []), { tokenId, hash, nonce, raw }]);
  }
  return byToken;
}
