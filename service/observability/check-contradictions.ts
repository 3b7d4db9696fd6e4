import { setTimeout as sleep } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Clock } from '../base/clock';
import type { Schema } from '../database/schema';
import { messageOf } from '../base/errors';
import { scopeName, type JournalScope } from '../journal/journal-scope';
import type { Logger } from '../base/logger';
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

/** What is compared. */
export interface ContradictionCheckOptions {
  db: Kysely<Schema>;
  scope: JournalScope;
  /** Of the registry's feed. */
  confirmations: number;
  /** The first block that the feed reads; undefined: the registry's own. */
  startBlock: number | undefined;
  /** 0: the chain mines when it has something to mine. */
  blockTimeMs: number;
  clock: Clock;
  logger: Logger;
  /** Called for each contradiction that is told. */
  contradicted: () => void;
  /** What tests shorten. */
  timing?: Partial<CheckTiming>;
}

/** In milliseconds. */
export interface CheckTiming {
  /** Between two checks. */
  everyMs: number;
  /** How long a contradiction must last. */
  patienceMs: number;
}

const EVERY_MS = 60_000;
/** What CONFIRMATIONS blocks take where blocks take no time. */
const LOCAL_PATIENCE_MS = 60_000;
/** Other processes write the journal by their own clocks, and a row is seen only when it is committed. */
const OVERLAP_MS = 60_000;
/** Of one order in one check: 20,000 rows. What is more waits for the next check. */
const MOST_SLICES = 200;
/** Contradictions at once; with more than that something is wrong everywhere. */
const MOST_KNOWN = 1_000;

/** A contradiction, and what the two say. */
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
 * Compares what the watcher has read with what the journal says of the same tokens. The two see the chain at
 * different times: a contradiction is told when two checks or more have seen it, for as long as CONFIRMATIONS
 * blocks take. It is told once while it lasts.
 *
 * A check looks at what is new on either side since the last one, and again at the contradictions it saw.
 * The first checks go through all that there is.
 */
export class ContradictionCheck {
  readonly #options: ContradictionCheckOptions;
  readonly #patienceMs: number;
  /** By token. */
  readonly #known = new Map<string, Known>();
  /** Where each order goes on. */
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

  /** One check; gives up when the signal aborts. */
  async look(signal?: AbortSignal): Promise<void> {
    const { db, scope, confirmations, startBlock, clock } = this.#options;
    const now = clock.now();
    const feed = await readFeed(db, scope);
    if (feed === undefined) return;
    await this.#follow(feed);
    const sides = { db, scope: scopeName(scope), feed: feed.feed };
    const first = Math.max(startBlock ?? 0, feed.purgedUpTo + 1);
    const seen = { first, last: feed.nextBlock - 1 - confirmations };
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
    // What is unfinished is gone through again and again.
    if (places.unfinished > last.unfinished) places.unfinished = 0;
    // Together with what was found: a check that fails is made again from where it began.
    this.#places = places;
    this.#goBack('ended', now - OVERLAP_MS);
    this.#note(found, feed, now);
  }

  #firstPlaces(): Record<Order, number> {
    const { clock, startBlock } = this.#options;
    // What ended before is found by its block, or by its event.
    return { unfinished: 0, ended: clock.now() - OVERLAP_MS, mined: startBlock ?? 0, minted: 0 };
  }

  #goBack(order: Order, place: number): void {
    this.#places[order] = Math.min(this.#places[order], place);
  }

  /** Another chain is looked at from its beginning; the same from where a reorganisation may have begun. */
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
 * Checks every minute. A check that fails is made again a minute later.
 *
 * @returns what stops it; a check that is under way is waited for.
 */
export function startContradictionCheck(options: ContradictionCheckOptions): { stop(): Promise<void> } {
  const check = new ContradictionCheck(options);
  const stopped = new AbortController();
  const { signal } = stopped;
  async function run(): Promise<void> {
    for (;;) {
      await sleep(options.timing?.everyMs ?? EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await check.look(signal).catch((error: unknown) => {
        options.logger.warn({ error }, `journal and watcher could not be compared: ${messageOf(error)}`);
      });
    }
  }
  const finished = run();
  return {
    async stop() {
      stopped.abort();
      await finished;
    },
  };
}
