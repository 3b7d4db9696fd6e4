import type { Kysely } from 'kysely';
import type { Clock } from '../base/clock';
import type { Schema } from '../database/schema';
import { messageOf } from '../base/errors';
import { scopeName, type JournalScope } from '../journal/journal-scope';
import type { Logger } from '../base/logger';
import { repeat } from '../base/pause';
import {
  contradictionError,
  contradictionIn,
  type Contradiction,
  type SeenBlocks,
  type Statements,
} from './judge-statements';
import {
  hasBlock,
  nextSlice,
  ORDERS,
  readFeed,
  readStatements,
  type FeedPosition,
  type Order,
  type Sides,
} from './read-statements';

/** Options of the contradiction check. */
export interface ContradictionCheckOptions {
  db: Kysely<Schema>;
  scope: JournalScope;
  /** Number of confirmations that the registry's feed requires. */
  confirmations: number;
  /** The first block that the feed reads. Defaults to the registry's own. */
  startBlock: number | undefined;
  /** 0: the chain mines only when there is a transaction. */
  blockTimeMs: number;
  clock: Clock;
  logger: Logger;
  /** Called for each contradiction that is reported. */
  contradicted: () => void;
  /** The blocks of mints by token id, as the mint queue of this process reports them. */
  recentMints: Map<string, number>;
  /** Lets the feed read a block again: a mint of the journal is in it, and its events are missing. */
  readAgain: (block: number) => void;
  /** Shortened in tests. */
  timing?: Partial<CheckTiming>;
}

/** Durations in milliseconds. */
export interface CheckTiming {
  /** Interval of the checks of all new rows. */
  everyMs: number;
  /** Interval of the looks at recent mints. */
  lookEveryMs: number;
  /** How long a contradiction must last before it is reported. */
  patienceMs: number;
}

const EVERY_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
/** Stands for the time of CONFIRMATIONS blocks on chains that have no block time. */
const LOCAL_PATIENCE_MS = 60_000;
/** Other processes write the journal by their own clocks, and a row is visible only once it is committed. */
const OVERLAP_MS = 60_000;
/** Limit per order and check: 20,000 rows. The next check continues from there. */
const MOST_SLICES = 200;
/** Maximum number of contradictions that are tracked: with more than that, the fault is general. */
const MOST_KNOWN = 1_000;

/** A contradiction with the statements that cause it. */
interface Found {
  contradiction: Contradiction;
  statements: Statements;
}

/** A contradiction that the last check found. */
interface Known {
  contradiction: Contradiction;
  /** Epoch milliseconds. */
  since: number;
  isTold: boolean;
}

/**
 * Compares the events that the watcher has read with the journal's entries of the same tokens. The two see
 * the chain at different times, so a contradiction is reported only if at least two checks saw it and it has
 * lasted for the time of CONFIRMATIONS blocks. It is reported once while it lasts.
 *
 * A check looks at everything new on either side since the last one, and again at the contradictions it saw.
 * The first checks go through all rows. The block of a mint without its events is read again as soon as the
 * watcher has passed it.
 */
export class ContradictionCheck {
  readonly #options: ContradictionCheckOptions;
  readonly #patienceMs: number;
  /** Keyed by token id. */
  readonly #known = new Map<string, Known>();
  /** Where the next check continues in each order. */
  #places: Record<Order, number>;
  /** How far the watcher had read at the last check. */
  #last: FeedPosition | undefined;

  constructor(options: ContradictionCheckOptions) {
    const { blockTimeMs, confirmations, timing } = options;
    this.#options = options;
    const depthMs = blockTimeMs === 0 ? LOCAL_PATIENCE_MS : confirmations * blockTimeMs;
    this.#patienceMs = timing?.patienceMs ?? depthMs;
    this.#places = this.#firstPlaces();
  }

  /** Compares the recent mints of this process whose blocks the watcher has passed. */
  async look(): Promise<void> {
    const { db, scope, startBlock, recentMints, readAgain } = this.#options;
    const feed = recentMints.size > 0 ? await readFeed(db, scope) : undefined;
    if (feed === undefined) return;
    const passed = [...recentMints].flatMap(([tokenId, block]) => (block < feed.nextBlock ? tokenId : []));
    const seen = { first: startBlock ?? 0, last: feed.nextBlock - 1 };
    const sides = { db, scope: scopeName(scope), feed: feed.feed };
    for (const statements of await readStatements(sides, passed))
      if (contradictionIn(statements, seen) === 'MINT_WITHOUT_EVENT')
        readAgain(statements.journal.block ?? 0);
    for (const tokenId of passed) recentMints.delete(tokenId);
  }

  /** Compares what is new since the last check. It ends early if the signal aborts. */
  async run(signal?: AbortSignal): Promise<void> {
    const { db, scope, startBlock, clock } = this.#options;
    const now = clock.now();
    const feed = await readFeed(db, scope);
    if (feed === undefined) return;
    await this.#follow(feed);
    const sides = { db, scope: scopeName(scope), feed: feed.feed };
    const first = Math.max(startBlock ?? 0, feed.purgedUpTo + 1);
    const seen = { first, last: feed.nextBlock - 1 };
    const found = new Map<string, Found>();
    await this.#compare(sides, seen, [...this.#known.keys()], found);
    const last: Record<Order, number> = {
      unfinished: Number.MAX_SAFE_INTEGER,
      ended: now,
      mined: seen.last,
      minted: feed.nextBlock - 1,
    };
    const places = { ...this.#places };
    for (const order of ORDERS) {
      for (let slices = 0; slices < MOST_SLICES && places[order] <= last[order]; slices++) {
        if (signal?.aborted) return;
        const slice = await nextSlice(sides, order, { from: places[order], to: last[order] });
        await this.#compare(sides, seen, slice.tokenIds, found);
        places[order] = slice.next;
      }
    }
    // Unfinished issuances are checked over and over.
    if (places.unfinished > last.unfinished) places.unfinished = 0;
    // Set only now, with the result: a check that fails starts again from its beginning.
    this.#places = places;
    this.#goBack('ended', now - OVERLAP_MS);
    this.#note(found, feed, now);
  }

  #firstPlaces(): Record<Order, number> {
    const { clock, startBlock } = this.#options;
    // Issuances that ended earlier are found by their block or by their event.
    return { unfinished: 0, ended: clock.now() - OVERLAP_MS, mined: startBlock ?? 0, minted: 0 };
  }

  #goBack(order: Order, place: number): void {
    this.#places[order] = Math.min(this.#places[order], place);
  }

  /**
   * Starts from the beginning if the chain was replaced; after a reorganisation, from the oldest block it can
   * affect.
   */
  async #follow(feed: FeedPosition): Promise<void> {
    const last = this.#last;
    if (last?.feed !== feed.feed) {
      this.#places = this.#firstPlaces();
    } else if (!(await hasBlock(this.#options.db, last))) {
      this.#goBack('mined', last.oldestKept);
      this.#goBack('minted', last.oldestKept);
    }
    this.#last = feed;
  }

  async #compare(
    sides: Sides,
    seen: SeenBlocks,
    tokenIds: readonly string[],
    found: Map<string, Found>,
  ): Promise<void> {
    for (const statements of await readStatements(sides, tokenIds)) {
      const contradiction = contradictionIn(statements, seen);
      if (contradiction !== undefined && found.size < MOST_KNOWN)
        found.set(statements.journal.tokenId, { contradiction, statements });
    }
  }

  #note(found: ReadonlyMap<string, Found>, { nextBlock }: FeedPosition, now: number): void {
    for (const [tokenId, { contradiction }] of this.#known)
      if (found.get(tokenId)?.contradiction !== contradiction) this.#known.delete(tokenId);
    for (const [tokenId, { contradiction, statements }] of found) {
      const known = this.#known.get(tokenId);
      if (known === undefined) {
        this.#known.set(tokenId, { contradiction, since: now, isTold: false });
        const { block } = statements.journal;
        if (contradiction === 'MINT_WITHOUT_EVENT' && block !== undefined) this.#options.readAgain(block);
      } else if (!known.isTold && now - known.since >= this.#patienceMs) {
        known.isTold = true;
        this.#tell(contradiction, statements, nextBlock);
      }
    }
  }

  #tell(contradiction: Contradiction, { journal, minted }: Statements, nextBlock: number): void {
    const { logger, contradicted } = this.#options;
    const { tokenId, ...said } = journal;
    const error = contradictionError(contradiction, tokenId);
    const watcher = { minted, nextBlock };
    logger.error(
      { tokenId, journal: said, watcher, error },
      'the journal and the watcher contradict each other',
    );
    contradicted();
  }
}

/**
 * Checks every minute, and looks at recent mints every second. A failed check is repeated at its next turn.
 *
 * @returns `stop`, which waits for a check that is under way.
 */
export function startContradictionCheck(options: ContradictionCheckOptions): { stop(): Promise<unknown> } {
  const check = new ContradictionCheck(options);
  const { everyMs = EVERY_MS, lookEveryMs = LOOK_EVERY_MS } = options.timing ?? {};
  const tell = (error: unknown): void =>
    options.logger.warn({ error }, `journal and watcher could not be compared: ${messageOf(error)}`);
  const checks = repeat((signal) => check.run(signal).catch(tell), everyMs, everyMs);
  const looks = repeat(() => check.look().catch(tell), lookEveryMs, lookEveryMs);
  return { stop: () => Promise.all([checks.stop(), looks.stop()]) };
}
