import { setImmediate as nextTurn } from 'node:timers/promises';
import type { InferResult, Kysely } from 'kysely';
import type { Lifecycle } from '../base/lifecycle';
import { type Time, repeat } from '../base/time';
import { messageOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { registryName } from '../base/registry-name';
import type { FollowedRegistry } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { aboutOf, MINTED_TYPE } from '../events/cloud-event';
import { type JournalScope, scopeName } from '../journal/issuance';
import { findFeeds } from '../outbox/feeds';
import { tokenIdHexOf } from '../registry/token-id-forms';

const CONTRADICTIONS = {
  FAILED_MINT_HAS_TOKEN: {
    message: 'The journal says that the mint failed, the watcher that it made the token.',
    remedy: 'If the token exists, nobody has its document: have it returned, and burn it.',
  },
  OPEN_MINT_HAS_TOKEN: {
    message: 'The journal says that the token is not minted yet, the watcher that it is.',
    remedy: 'If the token exists, the mint queue does not see it: restart the service.',
  },
  MINT_WITHOUT_EVENT: {
    message: 'The journal says that the token was minted, the watcher has read that block and seen no mint.',
    remedy: 'If the token exists, subscribers did not get its events; otherwise the document has no token.',
  },
  MINTED_BY_ANOTHER_TRANSACTION: {
    message: 'The journal says that one transaction made the token, the watcher that another did.',
    remedy: 'If the token exists, the hash in the answer is wrong; otherwise the document has no token.',
  },
} as const;

type Contradiction = keyof typeof CONTRADICTIONS;

/** The journal's entries of a scope. */
const entriesIn = (db: Kysely<Schema>, scope: JournalScope) =>
  db
    .selectFrom('issuances')
    .select(['token_id as tokenId', 'position', 'state', 'failure_code as failure'])
    .select(['tx_hash as txHash', 'block_number as block'])
    .where('scope', '=', scopeName(scope));

type Entry = InferResult<ReturnType<typeof entriesIn>>[number];

/** A recorded event of a mint. Its block was final when it was read. */
interface Mint {
  txHash: string;
  block: number;
}

/** The feed of the journal's registry. It has the events of the blocks from `first` to `nextBlock` - 1. */
interface Feed {
  id: number;
  first: number;
  nextBlock: number;
}

/**
 * Returns the contradiction between the journal's entry and the recorded mints of its token, or undefined if
 * both can be right. After a local chain was restarted, the block of a mint is unknown.
 */
function contradictionIn(
  { state, txHash, block }: Entry,
  mints: readonly Mint[],
  { first, nextBlock }: Feed,
): Contradiction | undefined {
  const isMade = mints.length > 0;
  if (state === 'failed') return isMade ? 'FAILED_MINT_HAS_TOKEN' : undefined;
  if (state === 'signed' || state === 'submitted') return isMade ? 'OPEN_MINT_HAS_TOKEN' : undefined;
  const hasRead = block !== null && block >= first && block < nextBlock;
  if (!hasRead || mints.some((mint) => mint.txHash === txHash)) return undefined;
  return isMade ? 'MINTED_BY_ANOTHER_TRANSACTION' : 'MINT_WITHOUT_EVENT';
}

/** Parts of the contradiction check. */
export interface ContradictionCheckOptions {
  database: Pick<Database, 'db'>;
  scope: JournalScope;
  /** The followed registry of the scope. */
  registry: Pick<FollowedRegistry, 'confirmations' | 'network' | 'startBlock'>;
  time: Time;
  logger: Logger;
  lifecycle: Lifecycle;
  /** Lets the feed read a block again: a mint of the journal is in it, and its events are missing. */
  readAgain: (block: number) => void;
}

const EVERY_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
/** Stands for the time of the confirmations on chains that have no block time. */
const LOCAL_PATIENCE_MS = 60_000;
/** Documents that are compared at once: SQLite blocks the event loop. */
const PAGE = 100;
/** Each check compares the newest 1,000 documents, and 4,000 of the others in turn. */
const NEWEST_PAGES = 10;
const MOST_PAGES = 50;
/** Maximum number of contradictions that are tracked: with more than that, the fault is general. */
const MOST_KNOWN = 1_000;
/** The check of all mints finds those beyond this number, a minute later. */
const MOST_RECENT = 10_000;
const NEWEST = Number.MAX_SAFE_INTEGER;

/**
 * Compares the journal's entries with the events of their mints that the watcher has recorded. The two see
 * the chain at different times, so a contradiction is reported only if at least two checks saw it and it has
 * lasted for the time of the confirmations. It is reported once while it lasts.
 *
 * A check compares the newest documents, the older ones in turn, and again those with a contradiction. The
 * block of a mint without its event is read again as soon as the watcher has passed it, and at each check
 * while the event is missing.
 */
export class ContradictionCheck {
  readonly #options: ContradictionCheckOptions;
  /** How long a contradiction must last before it is reported. */
  readonly #patienceMs: number;
  /** The contradictions that were found, by token id. Times in epoch milliseconds. */
  readonly #known = new Map<
    string,
    { contradiction: Contradiction; since: number; seenAt: number; isTold: boolean }
  >();
  /** The blocks of mints of this process that the watcher has not passed yet, by token id. */
  readonly #recent = new Map<string, number>();
  /** Position in the journal from which the next check compares older documents. */
  #place = NEWEST;

  constructor(options: ContradictionCheckOptions) {
    options.lifecycle.on('mined', (tokenId, block) => {
      if (this.#recent.size < MOST_RECENT) this.#recent.set(tokenId, block);
    });
    const { network, confirmations } = options.registry;
    const { blockTimeMs } = network;
    this.#options = options;
    // The time until the chain calls a block final is not known before.
    const blocks = typeof confirmations === 'number' ? confirmations : network.confirmations;
    this.#patienceMs = blockTimeMs === 0 ? LOCAL_PATIENCE_MS : blocks * blockTimeMs;
  }

  /**
   * Compares the recent mints of this process whose blocks the watcher has passed. A contradiction only lets
   * the block be read again: `run` notes it if it lasts.
   */
  async look(): Promise<void> {
    const feed = this.#recent.size > 0 ? await this.#readFeed() : undefined;
    if (feed === undefined) return;
    const passed = [...this.#recent].flatMap(([tokenId, block]) => (block < feed.nextBlock ? tokenId : []));
    await this.#compareTokens(feed, passed);
    for (const tokenId of passed) this.#recent.delete(tokenId);
  }

  /** Compares a part of the journal. It ends early if the signal aborts. */
  async run(signal?: AbortSignal): Promise<void> {
    const { scope, time } = this.#options;
    const { db } = this.#options.database;
    const now = time.now();
    const feed = await this.#readFeed();
    if (feed === undefined) return;
    await this.#compareTokens(feed, [...this.#known.keys()], now);
    let place = NEWEST;
    for (let pages = 1; pages <= MOST_PAGES; pages++) {
      if (signal?.aborted) return;
      const entries = await entriesIn(db, scope)
        .where('position', '<=', place)
        .orderBy('position', 'desc')
        .limit(PAGE)
        .execute();
      await this.#compare(feed, entries, now);
      // Concurrent insertions may share a position, so the next page begins with the last one of this page.
      place = entries.length < PAGE ? NEWEST : (entries.at(-1)?.position ?? NEWEST);
      if (place === NEWEST) break;
      if (pages === NEWEST_PAGES) place = Math.min(place, this.#place);
    }
    this.#place = place;
    for (const [tokenId, { seenAt }] of this.#known) if (seenAt < now) this.#known.delete(tokenId);
  }

  /**
   * Reads the feed of the journal's registry, on the journal's chain. Undefined while there is none: a local
   * chain was restarted, and the mint queue or the watcher has not noticed yet. The journal of a public
   * network stores no chain, because there is only one.
   */
  async #readFeed(): Promise<Feed | undefined> {
    const { database, scope, registry } = this.#options;
    const { db } = database;
    const [name] = await findFeeds(db, registryName(scope.chainId, scope.registryAddress));
    if (name === undefined) return undefined;
    const row = await db
      .selectFrom('feeds')
      .leftJoin('journal_chains', (join) => join.on('scope', '=', scopeName(scope)))
      .select(['id', 'next_block', 'purged_up_to', 'genesis_hash'])
      .where('feed', '=', name)
      .executeTakeFirstOrThrow();
    // A feed's name ends with the first digits of the hash of block 0.
    if (row.genesis_hash?.startsWith(`0x${name.split(':')[2]}`) === false) return undefined;
    const first = Math.max(registry.startBlock ?? 0, (row.purged_up_to ?? -1) + 1);
    return { id: row.id, first, nextBlock: row.next_block };
  }

  async #compareTokens(feed: Feed, tokenIds: readonly string[], now?: number): Promise<void> {
    const { database, scope } = this.#options;
    for (let from = 0; from < tokenIds.length; from += PAGE) {
      const some = tokenIds.slice(from, from + PAGE);
      const entries = await entriesIn(database.db, scope).where('token_id', 'in', some).execute();
      await this.#compare(feed, entries, now);
    }
  }

  /**
   * Lets the feed read the blocks of mints without events again, each time: a reading may fail.
   *
   * @param now contradictions are noted for this time. Undefined: they are not.
   */
  async #compare(feed: Feed, entries: readonly Entry[], now?: number): Promise<void> {
    const { database, readAgain } = this.#options;
    const tokenIds = entries.map(({ tokenId }) => tokenId);
    const mints = await mintsOf(database.db, feed, tokenIds);
    for (const entry of entries) {
      const minted = mints.get(entry.tokenId) ?? [];
      const contradiction = contradictionIn(entry, minted, feed);
      if (contradiction === undefined) continue;
      if (contradiction === 'MINT_WITHOUT_EVENT' && entry.block !== null) readAgain(entry.block);
      if (now !== undefined && this.#hasLasted(contradiction, entry, now))
        this.#tell(contradiction, entry, { minted, nextBlock: feed.nextBlock });
    }
    await nextTurn();
  }

  /** Notes a contradiction. Whether it is to be told now: once, when it has lasted. */
  #hasLasted(contradiction: Contradiction, { tokenId }: Entry, now: number): boolean {
    const known = this.#known.get(tokenId);
    if (known?.contradiction !== contradiction) {
      if (known !== undefined || this.#known.size < MOST_KNOWN)
        this.#known.set(tokenId, { contradiction, since: now, seenAt: now, isTold: false });
      return false;
    }
    known.seenAt = now;
    if (known.isTold || now - known.since < this.#patienceMs) return false;
    return (known.isTold = true);
  }

  #tell(contradiction: Contradiction, entry: Entry, watcher: { minted: readonly Mint[]; nextBlock: number }) {
    const { tokenId, state, failure, txHash, block } = entry;
    const { message, remedy } = CONTRADICTIONS[contradiction];
    const look = `Look at it with \`npx tdoc token ${tokenId}\`.`;
    const error = new ServiceError(contradiction, message, {
      remedy: `${look} ${remedy} See docs/operations.md, "Contradictions".`,
    });
    const said = Object.entries({ state, failure, txHash, block }).filter(([, value]) => value !== null);
    const journal: unknown = Object.fromEntries(said);
    const text = 'the journal and the watcher contradict each other';
    this.#options.logger.error({ tokenId, journal, watcher, error }, text);
    this.#options.lifecycle.emit('contradicted');
  }
}

/** The recorded mints of tokens, by token id. Those of orphaned blocks do not count. */
async function mintsOf(
  db: Kysely<Schema>,
  feed: Feed,
  tokenIds: readonly string[],
): Promise<Map<string, Mint[]>> {
  const mints = new Map<string, Mint[]>();
  if (tokenIds.length === 0) return mints;
  const decimals = tokenIds.map((tokenId) => BigInt(`0x${tokenId}`).toString());
  const rows = await db
    .selectFrom('events')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select(['body', 'block_number'])
    .where('tokens.feed', '=', feed.id)
    .where('token_id', 'in', decimals)
    .where('type', '=', MINTED_TYPE)
    .where('audience', '=', 'all')
    .where('orphaned_at', 'is', null)
    .execute();
  for (const { body, block_number: block } of rows) {
    const { tokenId, transactionHash: txHash = '' } = aboutOf(body);
    const hex = tokenIdHexOf(BigInt(tokenId));
    mints.set(hex, [...(mints.get(hex) ?? []), { txHash, block }]);
  }
  return mints;
}

/**
 * Checks every minute, and looks at recent mints every second. A failed check is repeated at its next turn.
 *
 * @returns `stop`, which waits for a check that is under way.
 */
export function startContradictionCheck(options: ContradictionCheckOptions): { stop(): Promise<unknown> } {
  const check = new ContradictionCheck(options);
  const { time } = options;
  const tell = (error: unknown): void =>
    options.logger.warn({ error }, `journal and watcher could not be compared: ${messageOf(error)}`);
  const checks = repeat(time, (signal) => check.run(signal).catch(tell), EVERY_MS, EVERY_MS);
  const looks = repeat(time, () => check.look().catch(tell), LOOK_EVERY_MS, LOOK_EVERY_MS);
  return { stop: () => Promise.all([checks.stop(), looks.stop()]) };
}
