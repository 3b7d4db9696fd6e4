import type { Clock } from '../clock';
import type { Database } from '../database/database';
import { ServiceError } from '../errors';
import { addIssuance } from './add-issuance';
import { readParts } from './document-parts';
import { documentLength, findIssuance, findIssuanceByKey } from './find-issuance';
import type { Journal, JournalScope } from './journal';
import { scopeName } from './journal-scope';
import { keepTransactions } from './keep-transactions';
import { purgeIssuances, removeIssuance, type Removal } from './purge-issuances';
import { unfinishedIssuances } from './unfinished-issuances';

/** The journal, and what is asked of it besides issuing. */
export interface DatabaseJournal extends Journal {
  /** Bytes of a document; undefined when there is no such issuance. */
  documentLength(tokenId: string): Promise<number | undefined>;
  /** Removes one issuance that is mined or failed, with its document. */
  remove(tokenId: string): Promise<Removal>;
}

/** Token ids of one statement. */
const BATCH = 200;

/** The journal of one wallet, chain and registry in a database: the same statements on both engines. */
export function createDatabaseJournal(
  database: Database,
  journalScope: JournalScope,
  clock: Clock,
): DatabaseJournal {
  const { db, transact } = database;
  const scope = scopeName(journalScope);
  return {
    add: (prepared, request) => addIssuance(database, { scope, prepared, request, now: clock.now() }),
    find: (tokenId) => findIssuance(db, scope, tokenId),
    findByKey: (key) => findIssuanceByKey(db, scope, key),
    documentLength: (tokenId) => documentLength(db, scope, tokenId),
    async *documentOf(tokenId) {
      const length = await documentLength(db, scope, tokenId);
      if (length === undefined) throw unknown(tokenId);
      yield* readParts(db, { scope, tokenId }, length);
    },
    unfinished: () => unfinishedIssuances(db, scope),
    keepTransactions: (transactions) => keepTransactions(database, scope, transactions),
    async submitted(tokenIds) {
      for (let from = 0; from < tokenIds.length; from += BATCH) {
        await transact((transaction) =>
          transaction
            .updateTable('issuances')
            .set({ state: 'submitted' })
            .where('scope', '=', scope)
            .where('token_id', 'in', tokenIds.slice(from, from + BATCH))
            .where('ended_at', 'is', null)
            .execute(),
        );
      }
    },
    async mined(tokenId, txHash) {
      // What is mined is mined, even if somebody has given it up.
      const { numUpdatedRows } = await transact((transaction) =>
        transaction
          .updateTable('issuances')
          .set({ state: 'mined', tx_hash: txHash, failure_code: null, failure_message: null })
          .set((eb) => ({ ended_at: eb.fn.coalesce('ended_at', eb.val(clock.now())) }))
          .where('scope', '=', scope)
          .where('token_id', '=', tokenId)
          .executeTakeFirst(),
      );
      if (numUpdatedRows !== 1n) throw unknown(tokenId);
    },
    async failed(tokenId, { code, message }) {
      await db
        .updateTable('issuances')
        .set({ state: 'failed', failure_code: code, failure_message: message })
        .set({ idempotency_key: null, ended_at: clock.now() })
        .where('scope', '=', scope)
        .where('token_id', '=', tokenId)
        .where('ended_at', 'is', null)
        .execute();
    },
    purge: (endedBefore) => purgeIssuances(db, scope, endedBefore, clock.now()),
    remove: (tokenId) => removeIssuance(db, scope, tokenId, clock.now()),
  };
}

function unknown(tokenId: string): ServiceError {
  return new ServiceError('ISSUANCE_UNKNOWN', `Token ${tokenId} has no issuance in the journal.`);
}
