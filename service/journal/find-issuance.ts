import type { Kysely, Selectable } from 'kysely';
import type { IssuancesTable, Schema } from '../database/schema';
import type { Issuance } from './issuance';

/** Converts a row to an Issuance. */
export function issuanceOf(row: Selectable<IssuancesTable>): Issuance {
  const { failure_code: code, failure_message: message } = row;
  return {
    tokenId: row.token_id,
    credentialId: row.credential_id,
    beneficiary: row.beneficiary,
    holder: row.holder,
    remark: row.remark,
    blNumber: row.bl_number ?? undefined,
    state: row.state,
    txHash: row.tx_hash ?? undefined,
    failure: code === null || message === null ? undefined : { code, message },
    requestHash: row.request_hash ?? undefined,
    createdAt: row.created_at,
  };
}

/** The issuance of a token, or the one that has an Idempotency-Key. */
export async function findIssuance(
  db: Kysely<Schema>,
  scope: string,
  wanted: { token_id: string } | { idempotency_key: string },
): Promise<Issuance | undefined> {
  const row = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where((eb) => eb.and(wanted))
    .executeTakeFirst();
  return row && issuanceOf(row);
}

/** Length of a token's document in bytes; undefined when the token has no issuance. */
export async function documentLength(
  db: Kysely<Schema>,
  scope: string,
  tokenId: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('issuances')
    .select('document_bytes')
    .where('scope', '=', scope)
    .where('token_id', '=', tokenId)
    .executeTakeFirst();
  return row?.document_bytes;
}
