import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { tokenStreamOf, type CloudEvent } from '../outbox/cloud-event';
import { findFeeds } from '../outbox/find-feeds';
import { scopeName, type JournalScope } from '../journal/journal-scope';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { JournalStatement, MintedEvent, Statements } from './judge-statements';

/** Tokens of one statement, and rows of one reading: SQLite works on the event loop. */
const BATCH = 100;

const MINTED: CloudEvent['type'] = 'com.service.etr.minted';

/** How far the watcher has read the registry that a journal is about. */
export interface FeedPosition {
  feed: string;
  nextBlock: number;
  /** Of the block before; null when none was read. */
  lastHash: string | null;
  /** No reorganisation goes further back. */
  oldestKept: number;
  /** The last block of which old events were removed; -1: none were. */
  purgedUpTo: number;
}

/** The rows of a journal, and those of its registry's feed. */
export interface Sides {
  db: Kysely<Schema>;
  /** The journal's, by name. */
  scope: string;
  feed: string;
}

/**
 * The orders in which tokens are gone through:
 *
 * - `unfinished`: what is neither final nor failed, in the journal's order;
 * - `ended`: what is final or failed, by the time in epoch milliseconds;
 * - `mined`: what is mined or final, by the block that the journal says;
 * - `minted`: the events of mints, by their blocks.
 */
export const ORDERS = ['unfinished', 'ended', 'mined', 'minted'] as const;
export type Order = (typeof ORDERS)[number];

/** Rows of one place or more in an order, and where those after them begin. */
export interface Slice {
  /** 64 hexadecimal digits each. */
  tokenIds: string[];
  next: number;
}

/** Places in an order, both included, and how many rows at the most. */
interface Span {
  from: number;
  to: number;
  limit: number | undefined;
}

/** A row, and its place in an order. Undefined: it is of no mint. */
interface Placed {
  tokenId: string | undefined;
  place: number;
}

/**
 * The feed of the registry on the chain that the journal's blocks are of. Undefined while there is none: a
 * local chain was started anew, and the mint queue or the watcher has not seen it yet. The journal of a
 * public network names no chain: there is only one.
 */
export async function readFeed(db: Kysely<Schema>, scope: JournalScope): Promise<FeedPosition | undefined> {
  const { chainId, registryAddress } = scope;
  const [feed] = await findFeeds(db, `${chainId}:${registryAddress}`);
  if (feed === undefined) return undefined;
  const chain = await db
    .selectFrom('journal_chains')
    .select('genesis_hash')
    .where('scope', '=', scopeName(scope))
    .executeTakeFirst();
  // A feed's name ends with the first digits of the hash of block 0.
  if (chain !== undefined && !chain.genesis_hash.startsWith(`0x${feed.split(':')[2]}`)) return undefined;
  const row = await db
    .selectFrom('feeds')
    .select(['next_block', 'last_block_hash', 'purged_up_to'])
    .select((eb) =>
      eb
        .selectFrom('blocks')
        .select('number')
        .where('feed', '=', feed)
        .orderBy('number')
        .limit(1)
        .as('oldest_kept'),
    )
    .where('feed', '=', feed)
    .executeTakeFirstOrThrow();
  return {
    feed,
    nextBlock: row.next_block,
    lastHash: row.last_block_hash,
    oldestKept: row.oldest_kept ?? 0,
    purgedUpTo: row.purged_up_to ?? -1,
  };
}

/** Whether a feed has kept the block that it had read last; not when it went back, or forgot that block. */
export async function hasBlock(
  db: Kysely<Schema>,
  { feed, nextBlock, lastHash }: FeedPosition,
): Promise<boolean> {
  const block = await db
    .selectFrom('blocks')
    .select('hash')
    .where('feed', '=', feed)
    .where('number', '=', nextBlock - 1)
    .executeTakeFirst();
  return block !== undefined && block.hash === lastHash;
}

/** The next rows from a place on. Those of one place come together, however many they are. */
export async function nextSlice(
  sides: Sides,
  order: Order,
  { from, to }: { from: number; to: number },
): Promise<Slice> {
  const rows = await read(sides, order, { from, to, limit: BATCH + 1 });
  const beyond = rows[BATCH];
  if (beyond === undefined) return { tokenIds: tokensOf(rows), next: to + 1 };
  const before = rows.filter(({ place }) => place < beyond.place);
  if (before.length > 0) return { tokenIds: tokensOf(before), next: beyond.place };
  const same = await read(sides, order, { from: beyond.place, to: beyond.place, limit: undefined });
  return { tokenIds: tokensOf(same), next: beyond.place + 1 };
}

function tokensOf(rows: readonly Placed[]): string[] {
  return [...new Set(rows.flatMap(({ tokenId }) => tokenId ?? []))];
}

function read(sides: Sides, order: Order, span: Span): Promise<Placed[]> {
  switch (order) {
    case 'unfinished':
      return readIssuances(sides, 'position', span);
    case 'ended':
      return readIssuances(sides, 'ended_at', span);
    case 'mined':
      return readIssuances(sides, 'block_number', span);
    case 'minted':
      return readEvents(sides, span);
  }
}

/** Each column has an index after the scope. */
async function readIssuances(
  { db, scope }: Sides,
  column: 'position' | 'ended_at' | 'block_number',
  { from, to, limit }: Span,
): Promise<Placed[]> {
  const rows = await db
    .selectFrom('issuances')
    .select(['token_id', `${column} as place`])
    .where('scope', '=', scope)
    .where(column, '>=', from)
    .where(column, '<=', to)
    .$if(column === 'position', (query) => query.where('ended_at', 'is', null))
    .orderBy(column)
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute();
  return rows.map(({ token_id: tokenId, place }) => ({ tokenId, place: place ?? 0 }));
}

/**
 * All events of the blocks; those of mints are picked out here. No index knows the type: a statement that
 * looked for a few of them among many others would take long.
 */
async function readEvents({ db, feed }: Sides, { from, to, limit }: Span): Promise<Placed[]> {
  const rows = await db
    .selectFrom('events')
    .select(['type', 'token_id', 'block_number'])
    .where('feed', '=', feed)
    .where('block_number', '>=', from)
    .where('block_number', '<=', to)
    .orderBy('block_number')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute();
  return rows.map(({ type, token_id, block_number: place }) => ({
    tokenId: type === MINTED ? tokenIdHexOf(BigInt(token_id)) : undefined,
    place,
  }));
}

/** What both sides say of these tokens, as far as the journal knows them. */
export async function readStatements(sides: Sides, tokenIds: readonly string[]): Promise<Statements[]> {
  const { db, scope } = sides;
  const statements: Statements[] = [];
  for (let from = 0; from < tokenIds.length; from += BATCH) {
    const rows = await db
      .selectFrom('issuances')
      .select(['token_id', 'state', 'failure_code', 'tx_hash', 'block_number'])
      .where('scope', '=', scope)
      .where('token_id', 'in', tokenIds.slice(from, from + BATCH))
      .execute();
    const journal = rows.map((row): JournalStatement => ({
      tokenId: row.token_id,
      state: row.state,
      failure: row.failure_code ?? undefined,
      txHash: row.tx_hash ?? undefined,
      block: row.block_number ?? undefined,
    }));
    const minted = await mintedAmong(
      sides,
      journal.map(({ tokenId }) => tokenId),
    );
    statements.push(...journal.map((one) => ({ journal: one, minted: minted.get(one.tokenId) ?? [] })));
    await nextTurn();
  }
  return statements;
}

/** No index of events begins with the token; the queue of a token's deliveries names all its events. */
async function mintedAmong(
  { db, feed }: Sides,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, MintedEvent[]>> {
  const tokens = new Map(
    tokenIds.map((tokenId) => [tokenStreamOf(feed, BigInt(`0x${tokenId}`).toString()), tokenId]),
  );
  const minted = new Map<string, MintedEvent[]>();
  if (tokens.size === 0) return minted;
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('events', (join) =>
      join.onRef('events.feed', '=', 'deliveries.feed').onRef('events.event_id', '=', 'deliveries.event_id'),
    )
    .select(['deliveries.stream', 'events.transaction_hash', 'events.block_number'])
    .distinct()
    .where('deliveries.stream', 'in', [...tokens.keys()])
    .where('events.type', '=', MINTED)
    .where('events.orphaned_at', 'is', null)
    .execute();
  for (const { stream, transaction_hash: txHash, block_number: block } of rows) {
    const tokenId = tokens.get(stream) ?? '';
    minted.set(tokenId, [...(minted.get(tokenId) ?? []), { txHash, block }]);
  }
  return minted;
}
