import type { Kysely, Selectable } from 'kysely';
import { inBatches } from '../database/batches';
import { compiled } from '../database/compiled';
import type { IssuancesTable, Schema } from '../database/schema';
import { type Issuance, parseScope, scopeName, type JournalScope } from './issuance';
import { registryName } from '../base/registry-name';

/** Converts a row to an Issuance. */
export function issuanceOf(
  row: Omit<Selectable<IssuancesTable>, 'position' | 'ended_at' | 'block_number' | 'block_hash' | 'mined_at'>,
): Issuance {
  const { failure_code: code, failure_message: message } = row;
  return {
    tokenId: row.token_id,
    credentialId: row.credential_id,
    owner: row.beneficiary,
    holder: row.holder,
    remark: row.remark,
    blNumber: row.bl_number ?? undefined,
    state: row.state,
    txHash: row.tx_hash ?? undefined,
    failure: code === null || message === null ? undefined : { code, message },
    requestHash: row.request_hash ?? undefined,
    createdAt: row.created_at,
    ...(row.trace !== null && { trace: row.trace }),
  };
}

/** Selects the issuances of a scope. */
export function issuancesIn(db: Kysely<Schema>, scope: string) {
  return db.selectFrom('issuances').selectAll().where('scope', '=', scope);
}

/** The issuance of a token, or the one that has an Idempotency-Key. */
export async function findIssuance(
  db: Kysely<Schema>,
  scope: string,
  wanted: { token_id: string } | { idempotency_key: string },
): Promise<Issuance | undefined> {
  const row = await issuancesIn(db, scope)
    .where((eb) => eb.and(wanted))
    .executeTakeFirst();
  return row && issuanceOf(row);
}

/**
 * The traces of a registry's tokens that were issued here, by any issuer. Tokens without one are left out.
 *
 * @param registry as in `registryName`.
 * @param tokenIds 64 lower-case hexadecimal digits each.
 */
export async function tracesOfTokens(
  db: Kysely<Schema>,
  registry: string,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await inBatches(tokenIds, (some) =>
    db
      .selectFrom('issuances')
      .select(['scope', 'token_id', 'trace'])
      .where('token_id', 'in', some)
      .where('trace', 'is not', null)
      .execute(),
  );
  const own = found.filter(({ scope }) => scope.startsWith(`${registry}:`));
  return new Map(own.map(({ token_id, trace }) => [token_id, trace ?? '']));
}

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
  const rows = await issuancesIn(db, scope)
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
  const [row] = (await unfinishedFigures(db, { scope: scopeName(scope) })).rows;
  return {
    waiting: Number(row?.waiting),
    inFlight: Number(row?.in_flight),
    mined: Number(row?.mined),
    oldestAddedAt: row?.oldest ?? undefined,
  };
}

const unfinishedFigures = compiled((db, { scope }: { scope: string }) =>
  db
    .selectFrom('issuances')
    .select(({ fn }) => [
      fn.countAll().filterWhere('state', '=', 'signed').as('waiting'),
      fn.countAll().filterWhere('state', '=', 'submitted').as('in_flight'),
      fn.countAll().filterWhere('state', '=', 'mined').as('mined'),
      fn.min('created_at').filterWhere('state', 'in', ['signed', 'submitted']).as('oldest'),
    ])
    .where('scope', '=', scope)
    .where('ended_at', 'is', null),
);
