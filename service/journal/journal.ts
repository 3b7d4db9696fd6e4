import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Insertable } from 'kysely';
import type { Clock } from '../base/time';
import { untilNothingIsLeft } from '../database/batches';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { IssuancesTable } from '../database/schema';
import {
  beginStoring,
  documentOf,
  dropDocuments,
  endStoring,
  giveUpStoring,
  partsOf,
  removeUnfinished,
  storePart,
  type RowsKey,
} from './documents';
import {
  scopeName,
  type IdempotentRequest,
  type Issuance,
  type JournalScope,
  type Origin,
  type SignedDocument,
} from './issuance';
import { createMintProgress } from './mint-progress';
import { findIssuance, issuanceOf, issuancesIn, listIssuances, type IssuancesQuery } from './read-issuances';

/**
 * The record of issued and unfinished documents. A document is in the database before any of its transactions
 * is sent, so no crash loses a document whose token exists. Every promise resolves when the change is
 * durable.
 */
export type Journal = ReturnType<typeof createDatabaseJournal>;

/** Issuances per transaction. It is small because a running service waits for each transaction. */
const PURGED_AT_ONCE = 100;

const addIssuance = compiled((db, issuance: Omit<Insertable<IssuancesTable>, 'position'>) =>
  db
    .insertInto('issuances')
    .values((eb) => ({
      ...issuance,
      position: eb.fn.coalesce(
        eb
          .selectFrom('issuances')
          .select((one) => one('position', '+', 1).as('next'))
          .where('scope', '=', issuance.scope)
          .orderBy('position', 'desc')
          .limit(1),
        eb.lit(1),
      ),
    }))
    .onConflict((conflict) => conflict.columns(['scope', 'idempotency_key']).doNothing()),
);

/** The journal of one issuer, chain and registry in a database: the same statements on both engines. */
export function createDatabaseJournal(database: Database, journalScope: JournalScope, clock: Clock) {
  const { db, transact } = database;
  const scope = scopeName(journalScope);

  const find = (tokenId: string) => findIssuance(db, scope, { token_id: tokenId });
  const findByKey = (key: string) => findIssuance(db, scope, { idempotency_key: key });

  /**
   * Whether the issuance exists after a failure, as when the answer to a commit was lost. If it does not
   * exist, its stored parts are removed; if the database cannot be asked, the next purge removes them.
   */
  async function wasStored(key: RowsKey): Promise<boolean> {
    try {
      await giveUpStoring(db, key);
      return (await find(key.token_id)) !== undefined;
    } catch {
      return false;
    }
  }

  /**
   * Stores a document and its issuance, with the state `signed`. All parts but the last are stored first, one
   * statement each. One transaction then stores the last part and the issuance, so a document of one part
   * costs one commit, and every issuance has its whole document.
   *
   * @returns its issuance; or that of another document, which already has the Idempotency-Key, and nothing is
   *   stored.
   */
  async function add(
    { document, ...mint }: SignedDocument,
    request?: IdempotentRequest,
    origin?: Origin,
  ): Promise<Issuance> {
    const key = { scope, token_id: mint.tokenId };
    const now = clock.now();
    const taken = request && (await findByKey(request.key));
    if (taken) return taken;
    const row = {
      ...key,
      idempotency_key: request?.key ?? null,
      request_hash: request?.requestHash ?? null,
      credential_id: mint.credentialId,
      beneficiary: mint.owner,
      holder: mint.holder,
      remark: mint.remark,
      bl_number: mint.blNumber ?? null,
      state: 'signed' as const,
      tx_hash: null,
      failure_code: null,
      failure_message: null,
      document_bytes: document.length,
      created_at: now,
      trace: origin?.trace ?? null,
      received_at: origin?.receivedAt ?? null,
      signing_at: origin?.signingAt ?? null,
      signed_at: origin?.signedAt ?? null,
    };
    const issuance = issuanceOf(row);
    const parts = partsOf(document);
    const last = parts.length - 1;
    try {
      if (last > 0) await beginStoring(db, key, now);
      for (const [part, bytes] of parts.slice(0, last).entries()) {
        await storePart(db, { ...key, part, bytes });
        await nextTurn();
      }
      for (;;) {
        const isStored = await transact(async (transaction) => {
          const added = await addIssuance(transaction, row);
          // Another issuance has the key.
          if (added.numAffectedRows === 0n) return false;
          await storePart(transaction, { ...key, part: last, bytes: parts[last] ?? new Uint8Array() });
          if (last > 0) await endStoring(transaction, key);
          return true;
        });
        if (isStored || request === undefined) return issuance;
        const other = await findByKey(request.key);
        // Another issuance had the key, and has freed it by now.
        if (other === undefined) continue;
        if (last > 0) await giveUpStoring(db, key);
        return other;
      }
    } catch (error) {
      if (await wasStored(key)) return issuance;
      throw error;
    }
  }

  /** Issuances that no node is known to have, in the order of adding. */
  async function signed(): Promise<Issuance[]> {
    const rows = await issuancesIn(db, scope)
      .where('ended_at', 'is', null)
      .where('state', '=', 'signed')
      .orderBy('position')
      .execute();
    return rows.map(issuanceOf);
  }

  /**
   * Removes issuances that ended before a time (epoch milliseconds), and documents that were only partly
   * stored. It ends early when the signal aborts.
   *
   * @returns the number of removed issuances.
   */
  async function purge(endedBefore: number, signal?: AbortSignal): Promise<number> {
    let removed = 0;
    await untilNothingIsLeft(async () => {
      const ended = await db
        .selectFrom('issuances')
        .select('token_id')
        .where('scope', '=', scope)
        .where('ended_at', '<', endedBefore)
        .orderBy('ended_at')
        .limit(PURGED_AT_ONCE)
        .execute();
      const tokenIds = ended.map(({ token_id }) => token_id);
      if (tokenIds.length > 0) removed += await removeRows(tokenIds, endedBefore);
      // Another process may have removed them meanwhile, and left others.
      return tokenIds.length;
    }, signal);
    if (!signal?.aborted) await removeUnfinished(db, scope, clock.now());
    return removed;
  }

  /** Removes one issuance that is final or failed, whatever its age, with its document. */
  async function remove(tokenId: string): Promise<'removed' | 'unfinished' | 'unknown'> {
    const row = await issuancesIn(db, scope).where('token_id', '=', tokenId).executeTakeFirst();
    if (row === undefined) return 'unknown';
    if (row.ended_at === null) return 'unfinished';
    await removeRows([tokenId], Number.MAX_SAFE_INTEGER);
    await removeUnfinished(db, scope, clock.now());
    return 'removed';
  }

  /**
   * Deletes the rows and notes the documents whose parts are to be deleted, in one transaction, so a crash
   * leaves no issuance without its document.
   */
  async function removeRows(tokenIds: readonly string[], endedBefore: number): Promise<number> {
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

  return {
    ...createMintProgress(database, scope, clock),
    add,
    find,
    findByKey,
    list: (query: IssuancesQuery) => listIssuances(db, scope, query),
    documentOf: (tokenId: string) => documentOf(db, { scope, token_id: tokenId }),
    signed,
    purge,
    remove,
  };
}
