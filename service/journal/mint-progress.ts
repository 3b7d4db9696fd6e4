import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Clock } from '../base/time';
import { ServiceError } from '../base/errors';
import { inBatches } from '../database/batches';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { IssuancesTable, MintTransactionsTable } from '../database/schema';
import { dropDocuments } from './documents';
import type { BlockId, Failure, IssuanceState, MinedMint, MintTransaction, Unfinished } from './issuance';
import { issuanceOf, issuancesIn } from './read-issuances';

const newestPosition = compiled((db, { scope }: { scope: string }) =>
  db
    .selectFrom('mint_transactions')
    .select('position')
    .where('scope', '=', scope)
    .orderBy('position', 'desc')
    .limit(1),
);

const addTransactions = compiled((db, { rows }: { rows: Insertable<MintTransactionsTable>[] }) =>
  db
    .insertInto('mint_transactions')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['scope', 'token_id', 'hash']).doNothing()),
);

/** A change of the issuances that are in one of these states. */
interface IssuancesChange {
  set: Updateable<IssuancesTable>;
  scope: string;
  tokenIds: string[];
  from: IssuanceState[];
}

const setOfStates = compiled((db, { set, scope, tokenIds, from }: IssuancesChange) =>
  db
    .updateTable('issuances')
    .set(set)
    .where('scope', '=', scope)
    .where('token_id', 'in', tokenIds)
    .where('state', 'in', from),
);

/** The part of a journal that follows mints. */
export interface MintProgress {
  /** Issuances neither final nor failed, in the order of adding. Their transactions: the oldest first. */
  unfinished(): Promise<Unfinished[]>;
  /** Stores signed transactions before they are sent, all or none. A stored one keeps its position. */
  keepTransactions(transactions: readonly MintTransaction[]): Promise<void>;
  /** Sets signed issuances to `submitted`. */
  submitted(tokenIds: readonly string[]): Promise<void>;
  /**
   * Sets an issuance to `mined`, or to `final`. A failed issuance stays failed, because its document is gone.
   *
   * @throws ServiceError ISSUANCE_UNKNOWN when the token has no issuance, or a failed one.
   */
  mined(tokenId: string, mint: MinedMint, isFinal: boolean): Promise<void>;
  /** Sets mined issuances to `final`. */
  final(tokenIds: readonly string[]): Promise<void>;
  /** Sets a mined or final issuance to `submitted`: its block is gone. The hash stays: callers have it. */
  unmined(tokenId: string): Promise<void>;
  /**
   * Sets an unfinished issuance that was never mined to `failed`. Frees its Idempotency-Key, so that the same
   * request may be tried again, and removes its document.
   */
  failed(tokenId: string, failure: Failure): Promise<void>;
  /**
   * Notes the chain that the blocks belong to.
   *
   * @returns false when the noted blocks belonged to another chain; the journal's mints then have no block
   *   any more.
   */
  enterChain(genesisHash: string): Promise<boolean>;
  /** The highest block of a final mint, below `below`. */
  highestFinal(below?: number): Promise<BlockId | undefined>;
  /** Final mints in this block and those above it. */
  finalSince(blockNumber: number): Promise<Unfinished[]>;
}

/** @param scope of the journal's rows, from scopeName. */
export function createMintProgress(database: Database, scope: string, clock: Clock): MintProgress {
  const { db, transact } = database;
  /** Changes those of the issuances that are in one of these states. Returns their number. */
  async function change(
    tokenIds: readonly string[],
    from: IssuanceState[],
    set: Updateable<IssuancesTable>,
  ): Promise<number> {
    const changed = await inBatches(tokenIds, (some) =>
      transact(async (tx) => [(await setOfStates(tx, { set, scope, tokenIds: some, from })).numAffectedRows]),
    );
    return changed.reduce((total, rows) => total + Number(rows), 0);
  }

  async function withTransactions(rows: readonly Selectable<IssuancesTable>[]): Promise<Unfinished[]> {
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
    for (const { token_id: tokenId, hash, nonce, raw, signed_at: signedAt } of found)
      byToken.get(tokenId)?.push({ tokenId, hash, nonce, raw, signedAt });
    return rows.map((row) => ({
      issuance: issuanceOf(row),
      transactions: byToken.get(row.token_id) ?? [],
      mined: minedIn(row),
    }));
  }

  return {
    async unfinished() {
      const rows = await issuancesIn(db, scope)
        .where('ended_at', 'is', null)
        .orderBy('position')
        .orderBy('created_at')
        .orderBy('token_id')
        .execute();
      return withTransactions(rows);
    },

    async keepTransactions(transactions) {
      if (transactions.length === 0) return;
      await transact(async (transaction) => {
        const [newest] = (await newestPosition(transaction, { scope })).rows;
        const last = newest?.position ?? 0;
        const rows = transactions.map((one, index) => {
          const { tokenId: token_id, hash, nonce, raw, signedAt: signed_at } = one;
          return { scope, token_id, hash, position: last + 1 + index, nonce, raw, signed_at };
        });
        await inBatches(rows, async (some) => (await addTransactions(transaction, { rows: some })).rows);
      });
    },

    async submitted(tokenIds) {
      await change(tokenIds, ['signed'], { state: 'submitted' });
    },

    async mined(tokenId, { txHash, block }, isFinal) {
      const now = clock.now();
      const changed = await change([tokenId], ['signed', 'submitted', 'mined', 'final'], {
        state: isFinal ? 'final' : 'mined',
        mined_at: now,
        ended_at: isFinal ? now : null,
        tx_hash: txHash,
        block_number: block.number,
        block_hash: block.hash,
      });
      if (changed === 1) return;
      const message = `Token ${tokenId} has no issuance in the journal, or one that failed.`;
      throw new ServiceError('ISSUANCE_UNKNOWN', message);
    },

    async final(tokenIds) {
      await change(tokenIds, ['mined'], { state: 'final', ended_at: clock.now() });
    },

    async unmined(tokenId) {
      const nowhere = { block_number: null, block_hash: null, mined_at: null, ended_at: null };
      await change([tokenId], ['mined', 'final'], { state: 'submitted', ...nowhere });
    },

    async failed(tokenId, { code, message }) {
      await db.transaction().execute(async (transaction) => {
        const row = await issuancesIn(transaction, scope)
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
          .set({ idempotency_key: null, ended_at: clock.now() })
          .where((eb) => eb.and({ scope, token_id: tokenId }))
          .execute();
        await dropDocuments(transaction, scope, [row]);
      });
    },

    async enterChain(genesisHash) {
      return db.transaction().execute(async (transaction) => {
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
    },

    async highestFinal(below = Number.MAX_SAFE_INTEGER) {
      const row = await issuancesIn(db, scope)
        .where('block_number', '<', below)
        .where('state', '=', 'final')
        .orderBy('block_number', 'desc')
        .limit(1)
        .executeTakeFirst();
      return row && { number: Number(row.block_number), hash: String(row.block_hash) };
    },

    async finalSince(blockNumber) {
      const rows = await issuancesIn(db, scope)
        .where('block_number', '>=', blockNumber)
        .where('state', '=', 'final')
        .orderBy('block_number')
        .orderBy('position')
        .execute();
      return withTransactions(rows);
    },
  };
}

function minedIn({ tx_hash, block_number, block_hash }: Selectable<IssuancesTable>): MinedMint | undefined {
  if (tx_hash === null || block_number === null || block_hash === null) return undefined;
  return { txHash: tx_hash, block: { number: block_number, hash: block_hash } };
}
