import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import { beginStoring, endStoring, giveUpStoring, partsOf, storePart, type DocumentKey } from './documents';
import type { IdempotentRequest, Issuance, JournalRows, SignedDocument } from './issuance';
import { findIssuance } from './read-issuances';

/** A document to be added to a journal. */
interface Addition {
  signed: SignedDocument;
  request: IdempotentRequest | undefined;
  /** Epoch milliseconds. */
  now: number;
}

/**
 * Stores a document and its issuance, with the state `signed`. All parts but the last are stored first, one
 * statement each. One transaction then stores the last part and the issuance, so a document of one part costs
 * one commit, and every issuance has its whole document.
 *
 * @returns undefined when the document was stored; otherwise the issuance that already has the
 *   Idempotency-Key, and nothing is stored.
 */
export async function addIssuance(
  { database: { db, transact }, scope }: JournalRows,
  addition: Addition,
): Promise<Issuance | undefined> {
  const { signed, request, now } = addition;
  const key = { scope, tokenId: signed.tokenId };
  const holderOfKey = async (): Promise<Issuance | undefined> =>
    request && findIssuance(db, scope, { idempotency_key: request.key });
  const taken = await holderOfKey();
  if (taken) return taken;
  const parts = partsOf(signed.document);
  const last = parts.length - 1;
  try {
    if (last > 0) await beginStoring(db, key, now);
    for (const [part, bytes] of parts.slice(0, last).entries()) {
      await storePart(db, key, part, bytes);
      await nextTurn();
    }
    for (;;) {
      const isStored = await transact(async (transaction) => {
        if (!(await insertIssuance(transaction, scope, addition))) return false;
        await storePart(transaction, key, last, parts[last] ?? new Uint8Array());
        if (last > 0) await endStoring(transaction, key);
        return true;
      });
      if (isStored || request === undefined) return undefined;
      const other = await holderOfKey();
      // Another issuance had the key, and has freed it by now.
      if (other === undefined) continue;
      if (last > 0) await giveUpStoring(db, key);
      return other;
    }
  } catch (error) {
    if (await wasStored(db, key)) return undefined;
    throw error;
  }
}

/** Inserts the issuance; false when another one has the key. */
async function insertIssuance(
  db: Transaction<Schema>,
  scope: string,
  { signed, request, now }: Addition,
): Promise<boolean> {
  const inserted = await db
    .insertInto('issuances')
    .values((eb) => ({
      scope,
      token_id: signed.tokenId,
      position: eb.fn.coalesce(
        eb
          .selectFrom('issuances')
          .select((one) => one('position', '+', 1).as('next'))
          .where('scope', '=', scope)
          .orderBy('position', 'desc')
          .limit(1),
        eb.lit(1),
      ),
      credential_id: signed.credentialId,
      beneficiary: signed.beneficiary,
      holder: signed.holder,
      remark: signed.remark,
      bl_number: signed.blNumber ?? null,
      document_bytes: signed.document.length,
      state: 'signed',
      idempotency_key: request?.key ?? null,
      request_hash: request?.requestHash ?? null,
      created_at: now,
    }))
    .onConflict((conflict) => conflict.columns(['scope', 'idempotency_key']).doNothing())
    .returning('token_id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/**
 * Whether the issuance exists after a failure, as when the answer to a commit was lost. If it does not exist,
 * its stored parts are removed; if the database cannot be asked, the next purge removes them.
 */
async function wasStored(db: Kysely<Schema>, key: DocumentKey): Promise<boolean> {
  try {
    await giveUpStoring(db, key);
    return (await findIssuance(db, key.scope, { token_id: key.tokenId })) !== undefined;
  } catch {
    return false;
  }
}
