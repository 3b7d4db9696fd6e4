import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { scopeName, type JournalScope } from './journal-scope';

/** How the mints of a journal stand, whichever process sends them. */
export interface MintFigures {
  /** No node is known to have a transaction of them. */
  waiting: number;
  /** A node may have their transactions. */
  inFlight: number;
  /** Their tokens exist, in blocks that are not final. */
  mined: number;
  /** When the oldest of those that wait or are in flight was added, in epoch milliseconds. */
  oldestAddedAt: number | undefined;
}

/** Counts what is unfinished: the index issuances_unfinished holds just these rows. */
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
