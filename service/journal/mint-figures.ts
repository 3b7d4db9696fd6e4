import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { scopeName, type JournalScope } from './journal-scope';

/** Number of a journal's mints by state, whichever process sends them. */
export interface MintFigures {
  /** Mints whose transactions no node is known to have. */
  waiting: number;
  /** Mints whose transactions a node may have. */
  inFlight: number;
  /** Mints whose tokens exist in blocks that are not final. */
  mined: number;
  /** When the oldest waiting or in-flight mint was added, in epoch milliseconds. */
  oldestAddedAt: number | undefined;
}

/** Counts unfinished mints. The index issuances_unfinished has exactly these rows. */
export async function mintFiguresOf(db: Kysely<Schema>, scope: JournalScope): Promise<MintFigures> {
  const row = await db
    .selectFrom('issuances')
    .select(({ fn }) => [
      fn.countAll().filterWhere('state', '=', 'signed').as('waiting'),
      fn.countAll().filterWhere('state', '=', 'submitted').as('in_flight'),
      fn.countAll().filterWhere('state', '=', 'mined').as('mined'),
      fn.min('created_at').filterWhere('state', 'in', ['signed', 'submitted']).as('oldest'),
    ])
    .where('scope', '=', scopeName(scope))
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  return {
    waiting: Number(row.waiting),
    inFlight: Number(row.in_flight),
    mined: Number(row.mined),
    oldestAddedAt: row.oldest ?? undefined,
  };
}
