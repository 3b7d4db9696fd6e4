import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { registryName } from '../base/registry-name';
import type { Schema } from '../database/schema';
import { channelKeysOf } from '../outbox/channels';
import type { CloudEvent } from '../events/cloud-event';
import { MINTED_TYPE } from '../events/event-types';
import { findFeeds } from '../outbox/find-feeds';
import { scopeName, type JournalScope } from '../journal/journal-scope';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { JournalStatement, MintedEvent, Statements } from './judge-statements';

/** Tokens per statement and rows per query: SQLite blocks the event loop. */
const BATCH = 100;

/** How far the watcher has read the journal's registry. */
export interface FeedPosition {
  feed: string;
  nextBlock: number;
  /** Hash of the block before `nextBlock`. Null if none was read. */
  lastHash: string | null;
  /** No reorganisation goes further back than this block. */
  oldestKept: number;
  /** The last block whose old events were purged. -1 if none were. */
  purgedUpTo: number;
}

/** The rows of both sides: those of the journal and those of its registry's feed. */
export interface Sides {
  db: Kysely<Schema>;
  /** Name of the journal's scope. */
  scope: string;
  feed: string;
}

/**
 * The orders in which tokens are checked:
 *
 * - `unfinished`: neither final nor failed, in the journal's order;
 * - `ended`: final or failed, by time in epoch milliseconds;
 * - `mined`: mined or final, by the block in the journal;
 * - `minted`: mint events, by block.
 */
export const ORDERS = ['unfinished', 'ended', 'mined', 'minted'] as const;
export type Order = (typeof ORDERS)[number];

/** The rows of one or more places in an order, and the place where the next slice begins. */
export interface Slice {
  /** 64 hexadecimal digits each. */
  tokenIds: string[];
  next: number;
}

/** A range of places in an order, both included, and the maximum number of rows. */
interface Span {
  from: number;
  to: number;
  limit: number | undefined;
}

/** A row and its place in an order. `tokenId` is undefined if the row is not of a mint. */
interface Placed {
  tokenId: string | undefined;
  place: number;
}

/**
 * Reads the position of the feed of the journal's registry, on the journal's chain. Undefined while there is
 * none: a local chain was restarted, and the mint queue or the watcher has not noticed yet. The journal of a
 * public network stores no chain, because there is only one.
 */
export async function readFeed(db: Kysely<Schema>, scope: JournalScope): Promise<FeedPosition | undefined> {
  const { chainId, registryAddress } = scope;
  const [feed] = await findFeeds(db, registryName(chainId, registryAddress));
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
        .whereRef('blocks.feed', '=', 'feeds.id')
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

/**
 * Whether the feed still keeps the block that it had read last. False if it was rewound or has dropped the
 * block.
 */
export async function hasBlock(
  db: Kysely<Schema>,
  { feed, nextBlock, lastHash }: FeedPosition,
): Promise<boolean> {
  const block = await db
    .selectFrom('blocks')
    .innerJoin('feeds', 'feeds.id', 'blocks.feed')
    .select('hash')
    .where('feeds.feed', '=', feed)
    .where('number', '=', nextBlock - 1)
    .executeTakeFirst();
  return block !== undefined && block.hash === lastHash;
}

/** Reads the next rows from a place on. All rows of one place are in the same slice. */
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

/** Each of these columns has an index that begins with the scope. */
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
 * Reads all events of the blocks and selects the mints here. No index contains the type, so a statement that
 * selected by it would scan as many rows.
 */
async function readEvents({ db, feed }: Sides, { from, to, limit }: Span): Promise<Placed[]> {
  const rows = await db
    .selectFrom('feeds')
    .innerJoin('events', 'events.feed', 'feeds.id')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select(['type', 'token_id', 'block_number'])
    .where('feeds.feed', '=', feed)
    .where('audience', '=', 'all')
    .where('block_number', '>=', from)
    .where('block_number', '<=', to)
    .orderBy('block_number')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute();
  return rows.map(({ type, token_id, block_number: place }) => ({
    tokenId: type === MINTED_TYPE ? tokenIdHexOf(BigInt(token_id)) : undefined,
    place,
  }));
}

/** Reads both sides' statements about the tokens that the journal contains. */
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

/** Finds events by their token's queue: no index of events begins with the token. */
async function mintedAmong(
  { db, feed }: Sides,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, MintedEvent[]>> {
  const tokens = new Map(tokenIds.map((tokenId) => [BigInt(`0x${tokenId}`).toString(), tokenId]));
  const minted = new Map<string, MintedEvent[]>();
  if (tokens.size === 0) return minted;
  const channels = await channelKeysOf(db, [feed]);
  const rows = await db
    .selectFrom('feeds')
    .innerJoin('tokens', 'tokens.feed', 'feeds.id')
    .innerJoin('deliveries', (join) =>
      join.on('deliveries.channel', 'in', channels).onRef('deliveries.token', '=', 'tokens.id'),
    )
    .innerJoin('events', 'events.id', 'deliveries.event')
    .select(['events.id', 'tokens.token_id', 'events.body', 'events.block_number'])
    .distinct()
    .where('feeds.feed', '=', feed)
    .where('tokens.token_id', 'in', [...tokens.keys()])
    .where('events.type', '=', MINTED_TYPE)
    .where('events.audience', '=', 'all')
    .where('events.orphaned_at', 'is', null)
    .execute();
  for (const { token_id, body, block_number: block } of rows) {
    const tokenId = tokens.get(token_id) ?? '';
    const txHash = (JSON.parse(body) as CloudEvent).data.transactionHash;
    minted.set(tokenId, [...(minted.get(tokenId) ?? []), { txHash, block }]);
  }
  return minted;
}
