import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { issuanceOf } from './find-issuance';
import type { MintTransaction, Unfinished } from './issuance';

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
  if (rows.length === 0) return [];
  const transactions = await transactionsOfUnfinished(db, scope);
  return rows.map((row) => ({
    issuance: issuanceOf(row),
    transactions: transactions.get(row.token_id) ?? [],
  }));
}

async function transactionsOfUnfinished(
  db: Kysely<Schema>,
  scope: string,
): Promise<Map<string, MintTransaction[]>> {
  const rows = await db
    .selectFrom('mint_transactions')
    .innerJoin('issuances', (join) =>
      join
        .onRef('issuances.scope', '=', 'mint_transactions.scope')
        .onRef('issuances.token_id', '=', 'mint_transactions.token_id'),
    )
    .select([
      'mint_transactions.token_id',
      'mint_transactions.hash',
      'mint_transactions.nonce',
      'mint_transactions.raw',
    ])
    .where('issuances.scope', '=', scope)
    .where('issuances.ended_at', 'is', null)
    .orderBy('mint_transactions.position')
    .execute();
  const byToken = new Map<string, MintTransaction[]>();
  for (const { token_id: tokenId, hash, nonce, raw } of rows) {
    const ofToken = byToken.get(tokenId) ?? [];
    ofToken.push({ tokenId, hash, nonce, raw });
    byToken.set(tokenId, ofToken);
  }
  return byToken;
}
