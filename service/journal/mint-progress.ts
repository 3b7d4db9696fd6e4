import type { Kysely, Selectable } from 'kysely';
import { ServiceError } from '../base/errors';
import { inBatches } from '../database/batches';
import type { IssuancesTable, Schema } from '../database/schema';
import { dropDocuments } from './documents';
import type {
  BlockId,
  Failure,
  Issuance,
  IssuanceState,
  JournalRows,
  MinedMint,
  MintTransaction,
  Unfinished,
} from './issuance';
import { issuanceOf } from './read-issuances';

/** Issuances neither final nor failed, in the order of adding, with their transactions, the oldest first. */
export async function unfinishedIssuances({ database: { db }, scope }: JournalRows): Promise<Unfinished[]> {
  const rows = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where('ended_at', 'is', null)
    .orderBy('position')
    .orderBy('created_at')
    .orderBy('token_id')
    .execute();
  return withTransactions(db, scope, rows);
}

/** Issuances that no node is known to have, in the order of adding. */
export async function signedIssuances({ database: { db }, scope }: JournalRows): Promise<Issuance[]> {
  const rows = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where('ended_at', 'is', null)
    .where('state', '=', 'signed')
    .orderBy('position')
    .execute();
  return rows.map(issuanceOf);
}

/** Stores signed transactions before they are sent, all or none. One that is stored keeps its position. */
export async function keepTransactions(
  { database: { transact }, scope }: JournalRows,
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
    await inBatches(rows, (some) =>
      transaction
        .insertInto('mint_transactions')
        .values(some)
        .onConflict((conflict) => conflict.columns(['scope', 'token_id', 'hash']).doNothing())
        .execute(),
    );
  });
}

/** Sets signed issuances to `submitted`. */
export async function noteSubmitted(rows: JournalRows, tokenIds: readonly string[]): Promise<void> {
  await change(rows, tokenIds, 'signed', { state: 'submitted' });
}

/**
 * Sets an issuance to `mined`, or to `final` when `finalAt` is given. A failed issuance stays failed, because
 * its document is gone.
 *
 * @throws ServiceError ISSUANCE_UNKNOWN when the token has no issuance, or a failed one.
 */
export async function noteMined(
  { database, scope }: JournalRows,
  tokenId: string,
  { txHash, block }: MinedMint,
  finalAt: number | undefined,
): Promise<void> {
  const { numUpdatedRows } = await database.transact((transaction) =>
    transaction
      .updateTable('issuances')
      .set({ state: finalAt === undefined ? 'mined' : 'final', ended_at: finalAt ?? null })
      .set({ tx_hash: txHash, block_number: block.number, block_hash: block.hash })
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .where('state', '!=', 'failed')
      .executeTakeFirst(),
  );
  if (numUpdatedRows === 1n) return;
  throw new ServiceError(
    'ISSUANCE_UNKNOWN',
    `Token ${tokenId} has no issuance in the journal, or one that failed.`,
  );
}

/** Sets mined issuances to `final`. */
export async function noteFinal(rows: JournalRows, tokenIds: readonly string[], now: number): Promise<void> {
  await change(rows, tokenIds, 'mined', { state: 'final', ended_at: now });
}

/** Changes those of the issuances that are in a state. */
async function change(
  { database, scope }: JournalRows,
  tokenIds: readonly string[],
  from: IssuanceState,
  values: { state: IssuanceState; ended_at?: number },
): Promise<void> {
  await inBatches(tokenIds, (some) =>
    database.transact((transaction) =>
      transaction
        .updateTable('issuances')
        .set(values)
        .where('scope', '=', scope)
        .where('token_id', 'in', some)
        .where('state', '=', from)
        .execute(),
    ),
  );
}

/** Sets a mined or final issuance to `submitted`: its block is gone. Callers may have the hash: it stays. */
export async function noteUnmined({ database, scope }: JournalRows, tokenId: string): Promise<void> {
  await database.db
    .updateTable('issuances')
    .set({ state: 'submitted', block_number: null, block_hash: null, ended_at: null })
    .where('scope', '=', scope)
    .where('token_id', '=', tokenId)
    .where('state', 'in', ['mined', 'final'])
    .execute();
}

/**
 * Sets an unfinished issuance that was never mined to `failed`. Frees its Idempotency-Key, so that the same
 * request may be tried again, and removes its document.
 */
export async function noteFailed(
  { database, scope }: JournalRows,
  tokenId: string,
  { code, message }: Failure,
  now: number,
): Promise<void> {
  await database.db.transaction().execute(async (transaction) => {
    const row = await transaction
      .selectFrom('issuances')
      .select(['token_id', 'document_bytes'])
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .where('ended_at', 'is', null)
      // Another process may have had the right to mint meanwhile, and seen the mint mined.
      .where('tx_hash', 'is', null)
      .executeTakeFirst();
    if (row === undefined) return;
    await transaction
      .updateTable('issuances')
      .set({ state: 'failed', failure_code: code, failure_message: message, document_bytes: 0 })
      .set({ tx_hash: null, block_number: null, block_hash: null })
      .set({ idempotency_key: null, ended_at: now })
      .where('scope', '=', scope)
      .where('token_id', '=', tokenId)
      .execute();
    await dropDocuments(transaction, scope, [row]);
  });
}

/**
 * Notes the chain that the blocks belong to.
 *
 * @returns false when the noted blocks belonged to another chain; the journal's mints then have no block any
 *   more.
 */
export async function enterChain({ database, scope }: JournalRows, genesisHash: string): Promise<boolean> {
  return database.db.transaction().execute(async (transaction) => {
    const noted = await transaction
      .selectFrom('journal_chains')
      .select('genesis_hash')
      .where('scope', '=', scope)
      .executeTakeFirst();
    if (noted?.genesis_hash === genesisHash) return true;
    await transaction
      .insertInto('journal_chains')
      .values({ scope, genesis_hash: genesisHash })
      .onConflict((conflict) => conflict.column('scope').doUpdateSet({ genesis_hash: genesisHash }))
      .execute();
    await transaction
      .updateTable('issuances')
      .set({ block_number: null, block_hash: null })
      .where('scope', '=', scope)
      .where('block_number', 'is not', null)
      .execute();
    return noted === undefined;
  });
}

/** The highest block of a final mint, below `below`. */
export async function highestFinal(
  { database: { db }, scope }: JournalRows,
  below = Number.MAX_SAFE_INTEGER,
): Promise<BlockId | undefined> {
  const row = await db
    .selectFrom('issuances')
    .select(['block_number', 'block_hash'])
    .where('scope', '=', scope)
    .where('block_number', '<', below)
    .where('state', '=', 'final')
    .orderBy('block_number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && { number: Number(row.block_number), hash: String(row.block_hash) };
}

/** Final mints in this block and those above it. */
export async function finalSince(
  { database: { db }, scope }: JournalRows,
  blockNumber: number,
): Promise<Unfinished[]> {
  const rows = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where('block_number', '>=', blockNumber)
    .where('state', '=', 'final')
    .orderBy('block_number')
    .orderBy('position')
    .execute();
  return withTransactions(db, scope, rows);
}

async function withTransactions(
  db: Kysely<Schema>,
  scope: string,
  rows: readonly Selectable<IssuancesTable>[],
): Promise<Unfinished[]> {
  const byToken = new Map<string, MintTransaction[]>(rows.map(({ token_id }) => [token_id, []]));
  const found = await inBatches([...byToken.keys()], (some) =>
    db
      .selectFrom('mint_transactions')
      .selectAll()
      .where('scope', '=', scope)
      .where('token_id', 'in', some)
      .execute(),
  );
  // Sorted here: with ORDER BY, SQLite would read every transaction of the journal.
  found.sort((left, right) => left.position - right.position);
  for (const { token_id: tokenId, hash, nonce, raw } of found)
    byToken.get(tokenId)?.push({ tokenId, hash, nonce, raw });
  return rows.map((row) => ({
    issuance: issuanceOf(row),
    transactions: byToken.get(row.token_id) ?? [],
    mined: minedIn(row),
  }));
}

function minedIn({ tx_hash, block_number, block_hash }: Selectable<IssuancesTable>): MinedMint | undefined {
  if (tx_hash === null || block_number === null || block_hash === null) return undefined;
  return { txHash: tx_hash, block: { number: block_number, hash: block_hash } };
}
