import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { findIssuance } from '../journal/read-issuances';
import { scopeName, type JournalScope } from '../journal/issuance';
import type { IssuingProgress } from './views';

/**
 * How far issuing of a document is. Undefined: it was not issued here.
 *
 * @param headBlock the chain's newest block, if it is known.
 */
export async function issuingProgress(
  db: Kysely<Schema>,
  scope: JournalScope,
  tokenId: string,
  headBlock: number | undefined,
): Promise<IssuingProgress | undefined> {
  const name = scopeName(scope);
  const issuance = await findIssuance(db, name, { token_id: tokenId });
  if (issuance === undefined) return undefined;
  const { state, createdAt, blNumber = null, txHash = null, failure = null } = issuance;
  const row = await db
    .selectFrom('issuances')
    .select('block_number')
    .where('scope', '=', name)
    .where('token_id', '=', tokenId)
    .executeTakeFirst();
  const block = row?.block_number ?? undefined;
  const isMined = (state === 'mined' || state === 'final') && block !== undefined;
  const confirmedBlocks = isMined && headBlock !== undefined ? Math.max(0, headBlock - block) : null;
  return { tokenId, blNumber, state, createdAt, txHash, confirmedBlocks, failure };
}
