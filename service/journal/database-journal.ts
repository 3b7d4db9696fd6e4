import type { Clock } from '../base/clock';
import type { Database } from '../database/database';
import { addIssuance } from './add-issuance';
import { readParts } from './document-parts';
import { documentLength, findIssuance } from './find-issuance';
import type { Journal } from './journal';
import { listIssuances } from './list-issuances';
import { scopeName, type JournalScope } from './journal-scope';
import { keepTransactions } from './keep-transactions';
import {
  enterChain,
  finalSince,
  highestFinal,
  noteFailed,
  noteFinal,
  noteMined,
  noteSubmitted,
  noteUnmined,
  signedIssuances,
  unfinishedIssuances,
} from './mint-progress';
import { purgeIssuances, removeIssuance } from './purge-issuances';

/** The journal of one issuer, chain and registry in a database: the same statements on both engines. */
export function createDatabaseJournal(database: Database, journalScope: JournalScope, clock: Clock): Journal {
  const { db } = database;
  const scope = scopeName(journalScope);
  const rows = { database, scope };
  return {
    add: (signed, request) => addIssuance(database, { scope, signed, request, now: clock.now() }),
    find: (tokenId) => findIssuance(db, scope, { token_id: tokenId }),
    findByKey: (key) => findIssuance(db, scope, { idempotency_key: key }),
    list: (query) => listIssuances(db, scope, query),
    async documentOf(tokenId) {
      const length = await documentLength(db, scope, tokenId);
      if (length === undefined) return undefined;
      const parts = { [Symbol.asyncIterator]: () => readParts(db, { scope, tokenId }, length) };
      return { length, parts };
    },
    unfinished: () => unfinishedIssuances(rows),
    signed: () => signedIssuances(rows),
    keepTransactions: (transactions) => keepTransactions(database, scope, transactions),
    submitted: (tokenIds) => noteSubmitted(rows, tokenIds),
    mined: (tokenId, mined, isFinal) => noteMined(rows, tokenId, mined, isFinal ? clock.now() : undefined),
    final: (tokenIds) => noteFinal(rows, tokenIds, clock.now()),
    unmined: (tokenId) => noteUnmined(rows, tokenId),
    failed: (tokenId, failure) => noteFailed(rows, tokenId, failure, clock.now()),
    enterChain: (genesisHash) => enterChain(rows, genesisHash),
    highestFinal: (below) => highestFinal(rows, below),
    finalSince: (blockNumber) => finalSince(rows, blockNumber),
    purge: (endedBefore, signal) => purgeIssuances(db, scope, { endedBefore, now: clock.now(), signal }),
    remove: (tokenId) => removeIssuance(db, scope, tokenId, clock.now()),
  };
}
