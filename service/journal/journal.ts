import type { Clock } from '../base/clock';
import type { Database } from '../database/database';
import { addIssuance } from './add-issuance';
import { documentOf } from './documents';
import {
  scopeName,
  type Failure,
  type IdempotentRequest,
  type JournalScope,
  type MinedMint,
  type MintTransaction,
  type SignedDocument,
} from './issuance';
import {
  enterChain,
  finalSince,
  highestFinal,
  keepTransactions,
  noteFailed,
  noteFinal,
  noteMined,
  noteSubmitted,
  noteUnmined,
  signedIssuances,
  unfinishedIssuances,
} from './mint-progress';
import { purgeIssuances, removeIssuance } from './purge-issuances';
import { findIssuance, listIssuances, type IssuancesQuery } from './read-issuances';

/**
 * The record of issued and unfinished documents. A document is in the database before any of its transactions
 * is sent, so no crash loses a document whose token exists. Every promise resolves when the change is
 * durable. The functions that it calls say what each method does.
 */
export type Journal = ReturnType<typeof createDatabaseJournal>;

/** The journal of one issuer, chain and registry in a database: the same statements on both engines. */
export function createDatabaseJournal(database: Database, journalScope: JournalScope, clock: Clock) {
  const { db } = database;
  const scope = scopeName(journalScope);
  const rows = { database, scope };
  return {
    add: (signed: SignedDocument, request?: IdempotentRequest) =>
      addIssuance(rows, { signed, request, now: clock.now() }),
    find: (tokenId: string) => findIssuance(db, scope, { token_id: tokenId }),
    findByKey: (key: string) => findIssuance(db, scope, { idempotency_key: key }),
    list: (query: IssuancesQuery) => listIssuances(db, scope, query),
    documentOf: (tokenId: string) => documentOf(db, { scope, tokenId }),
    unfinished: () => unfinishedIssuances(rows),
    signed: () => signedIssuances(rows),
    keepTransactions: (transactions: readonly MintTransaction[]) => keepTransactions(rows, transactions),
    submitted: (tokenIds: readonly string[]) => noteSubmitted(rows, tokenIds),
    mined: (tokenId: string, mined: MinedMint, isFinal: boolean) =>
      noteMined(rows, tokenId, mined, isFinal ? clock.now() : undefined),
    final: (tokenIds: readonly string[]) => noteFinal(rows, tokenIds, clock.now()),
    unmined: (tokenId: string) => noteUnmined(rows, tokenId),
    failed: (tokenId: string, failure: Failure) => noteFailed(rows, tokenId, failure, clock.now()),
    enterChain: (genesisHash: string) => enterChain(rows, genesisHash),
    highestFinal: (below?: number) => highestFinal(rows, below),
    finalSince: (blockNumber: number) => finalSince(rows, blockNumber),
    purge: (endedBefore: number, signal?: AbortSignal) =>
      purgeIssuances(db, scope, { endedBefore, now: clock.now(), signal }),
    remove: (tokenId: string) => removeIssuance(db, scope, tokenId, clock.now()),
  };
}
