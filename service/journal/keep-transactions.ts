import type { Database } from '../database/database';
import type { MintTransaction } from './issuance';

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 200;

/** Stores signed transactions, all or none. One that is stored already keeps its position. */
export async function keepTransactions(
  { transact }: Database,
  scope: string,
  transactions: readonly MintTransaction[],
): Promise<void> {
  if (transactions.length === 0) return;
  await transact(async (transaction) => {
    const newest = await transaction
      .selectFrom('mint_transactions')
      .select('position')
      .where('scope', '=', scope)
      .orderBy('position', 'desc')
      .limit(1)
      .executeTakeFirst();
    const last = newest?.position ?? 0;
    const rows = transactions.map(({ tokenId, hash, nonce, raw }, index) => ({
      scope,
      token_id: tokenId,
      hash,
      position: last + 1 + index,
      nonce,
      raw,
    }));
    for (let from = 0; from < rows.length; from += BATCH) {
      await transaction
        .insertInto('mint_transactions')
        .values(rows.slice(from, from + BATCH))
        .onConflict((conflict) => conflict.columns(['scope', 'token_id', 'hash']).doNothing())
        .execute();
    }
  });
}
