import type { Kysely } from 'kysely';
import { registryName } from '../base/registry-name';
import type { Schema } from '../database/schema';
import { parseScope, scopeName, type JournalScope } from './journal-scope';

/**
 * The journals of a registry that have issuances, of all issuers.
 *
 * @param registry chain id and address, `80002:0x…`, or the address alone, in any case.
 */
export async function findJournals(db: Kysely<Schema>, registry: string): Promise<JournalScope[]> {
  const rows = await db.selectFrom('issuances').select('scope').distinct().orderBy('scope').execute();
  const wanted = registry.toLowerCase();
  return rows
    .map(({ scope }) => parseScope(scope))
    .filter(
      ({ chainId, registryAddress }) =>
        wanted === registryAddress || wanted === registryName(chainId, registryAddress),
    );
}

/**
 * The journals with unfinished issuances, and their number. The index issuances_unfinished has exactly these
 * rows.
 */
export async function countUnfinished(
  db: Kysely<Schema>,
): Promise<{ scope: JournalScope; unfinished: number }[]> {
  const rows = await db
    .selectFrom('issuances')
    .select((eb) => ['scope', eb.fn.countAll().as('unfinished')])
    .where('ended_at', 'is', null)
    .groupBy('scope')
    .orderBy('scope')
    .execute();
  return rows.map(({ scope, unfinished }) => ({ scope: parseScope(scope), unfinished: Number(unfinished) }));
}

/** Number and total bytes of a journal's documents that ended before a time (epoch milliseconds). */
export async function countEnded(
  db: Kysely<Schema>,
  scope: JournalScope,
  endedBefore: number,
): Promise<{ documents: number; bytes: number }> {
  const row = await db
    .selectFrom('issuances')
    .select((eb) => [eb.fn.countAll().as('documents'), eb.fn.sum('document_bytes').as('bytes')])
    .where('scope', '=', scopeName(scope))
    .where('ended_at', '<', endedBefore)
    .executeTakeFirstOrThrow();
  return { documents: Number(row.documents), bytes: Number(row.bytes ?? 0) };
}
