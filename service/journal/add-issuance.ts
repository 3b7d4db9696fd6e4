import type { Kysely, Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { partsOf, storePart, storeParts, type DocumentKey } from './document-parts';
import type { Issuance, SignedDocument } from './issuance';
import { findIssuance, findIssuanceByKey } from './find-issuance';
import type { IdempotentRequest } from './journal';
import { beginStoring, endStoring, giveUpStoring } from './unfinished-documents';

/** A document to be added, and where. */
interface Addition {
  scope: string;
  signed: SignedDocument;
  request: IdempotentRequest | undefined;
  /** Epoch milliseconds. */
  now: number;
}

/**
 * Stores a document and its issuance. All parts but the last are stored before, one statement each; the last
 * part and the issuance are one transaction, so that a document of one part costs one commit, and an issuance
 * never has less than the whole document.
 *
 * @returns the issuance that has the key already; undefined when the document was stored.
 */
export async function addIssuance(database: Database, addition: Addition): Promise<Issuance | undefined> {
  const { db } = database;
  const { scope, signed, request, now } = addition;
  const key = { scope, tokenId: signed.tokenId };
  const taken = request && (await findIssuanceByKey(db, scope, request.key));
  if (taken) return taken;
  const parts = partsOf(signed.document);
  try {
    if (parts.length > 1) await beginStoring(db, key, now);
    await storeParts(db, key, parts.slice(0, -1));
    const other = await conclude(database, addition, parts);
    if (other && parts.length > 1) await giveUpStoring(db, key);
    return other;
  } catch (error) {
    if (await wasStored(db, key)) return undefined;
    throw error;
  }
}

/**
 * Makes the issuance with the last part. When the key was somebody else's and is free again by then, it is
 * tried again.
 */
async function conclude(
  { db, transact }: Database,
  addition: Addition,
  parts: readonly Uint8Array[],
): Promise<Issuance | undefined> {
  const { scope, signed, request } = addition;
  const key = { scope, tokenId: signed.tokenId };
  const last = parts.length - 1;
  for (;;) {
    const isStored = await transact(async (transaction) => {
      if (!(await insertIssuance(transaction, addition))) return false;
      await storePart(transaction, key, last, parts[last] ?? new Uint8Array());
      if (last > 0) await endStoring(transaction, key);
      return true;
    });
    if (isStored || request === undefined) return undefined;
    const other = await findIssuanceByKey(db, scope, request.key);
    if (other) return other;
  }
}

/** Whether the key was free. */
async function insertIssuance(
  db: Transaction<Schema>,
  { scope, signed, request, now }: Addition,
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
 * After a failure: whether the issuance is there all the same, as when the answer to a commit was lost. If it
 * is not, what was stored before it is removed; if nobody can tell, that is left to the next purge.
 */
async function wasStored(db: Kysely<Schema>, key: DocumentKey): Promise<boolean> {
  try {
    await giveUpStoring(db, key);
    return (await findIssuance(db, key.scope, key.tokenId)) !== undefined;
  } catch {
    return false;
  }
}
