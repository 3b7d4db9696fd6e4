import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { issuanceOf } from './find-issuance';
import type { Issuance } from './issuance';

/** Selects issuances. Times are in epoch milliseconds. */
export interface IssuancesQuery {
  state?: Issuance['state'] | undefined;
  /** Created at this time or later. */
  since?: number | undefined;
  /** Created before this time. */
  until?: number | undefined;
  /** The `next` of the page before. */
  after?: IssuancesPlace | undefined;
  limit: number;
}

/** A place in the list: issuances with a lower position, or the same and a lower token id, follow it. */
export interface IssuancesPlace {
  position: number;
  tokenId: string;
}

/** A page of issuances, newest first. It may be short, or empty, although more follow. */
export interface IssuancesPage {
  issuances: Issuance[];
  /** Undefined at the end. */
  next: IssuancesPlace | undefined;
}

/** How many issuances a page looks at, so that a selection of few among millions stays cheap. */
const MOST_LOOKED_AT = 5_000;

/** The issuances of a journal, newest first. */
export async function listIssuances(
  db: Kysely<Schema>,
  scope: string,
  { state, since, until, after, limit }: IssuancesQuery,
): Promise<IssuancesPage> {
  const top = after ?? (await placeAbove(db, scope));
  if (top === undefined) return { issuances: [], next: undefined };
  const lowest = top.position - MOST_LOOKED_AT;
  const rows = await db
    .selectFrom('issuances')
    .selectAll()
    .where('scope', '=', scope)
    .where('position', '>', lowest)
    .where('position', '<=', top.position)
    .where((eb) => eb.or([eb('position', '<', top.position), eb('token_id', '<', top.tokenId)]))
    .$if(state !== undefined, (query) => query.where('state', '=', state ?? 'final'))
    .$if(since !== undefined, (query) => query.where('created_at', '>=', since ?? 0))
    .$if(until !== undefined, (query) => query.where('created_at', '<', until ?? 0))
    .orderBy('position', 'desc')
    .orderBy('token_id', 'desc')
    .limit(limit + 1)
    .execute();
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return {
    issuances: shown.map(issuanceOf),
    next: last ? { position: last.position, tokenId: last.token_id } : await placeAbove(db, scope, lowest),
  };
}

/** The place above the newest issuance, or above the newest up to a position. Undefined if there is none. */
async function placeAbove(
  db: Kysely<Schema>,
  scope: string,
  upTo?: number,
): Promise<IssuancesPlace | undefined> {
  const newest = await db
    .selectFrom('issuances')
    .select('position')
    .where('scope', '=', scope)
    .$if(upTo !== undefined, (query) => query.where('position', '<=', upTo ?? 0))
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirst();
  // No token id sorts below the empty one: the list goes on with the newest position.
  return newest && { position: newest.position + 1, tokenId: '' };
}
