import type { Kysely, Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { partsOf, storePart, storeParts, type DocumentKey } from './document-parts';
import type { Issuance, SignedDocument } from './issuance';
import { findIssuance } from './find-issuance';
import type { IdempotentRequest } from './journal';
import { beginStoring, endStoring, giveUpStoring } from './unfinished-documents';

/** A document to be added to the journal of a scope. */
interface Addition {
  scope: string;
  signed: SignedDocument;
  request: IdempotentRequest | undefined;
  /** Epoch milliseconds. */
  now: number;
}

/**
 * Stores a document and its issuance. All parts but the last are stored first, one statement each. One
 * transaction then stores the last part and the issuance, so a document of one part costs one commit, and
 * every issuance has its whole document.
 *
 * @returns undefined when the document was stored; otherwise the issuance that already has the
 *   Idempotency-Key.
 */
export async function addIssuance(database: Database, addition: Addition): Promise<Issuance | undefined> {
  const { db } = database;
  const { scope, signed, request, now } = addition;
  const key = { scope, tokenId: signed.tokenId };
  const taken = request && (await findIssuance(db, scope, { idempotency_key: request.key }));
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
 * Stores the issuance with the last part. If another issuance had the key and has freed it by now, this tries
 * again.
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
    const other = await findIssuance(db, scope, { idempotency_key: request.key });
    if (other) return other;
  }
}

/** Inserts the issuance; false when another one has the key. */
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
