import { pause, untilAborted } from '../base/time';
import { ChainError, messageOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { registryName, type RegistryName } from '../base/registry-name';
import { networkOfChain } from '../chain/networks';
import { blockIfThere, BlockSpan, existingBlock, headNumberOf } from '../chain/read-chain';
import { nodeFailure } from '../chain/node-errors';
import type { Pauses } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { RegistryIdentity } from '../events/cloud-event';
import { findAllFeeds, openFeed, setHeld, type KeptBlock, type OpenFeed } from '../outbox/feeds';
import { restoreEvents } from '../outbox/purge-events';
import { rewindFeed } from '../outbox/rewind-feed';
import { createRegistryFinder, type ChainOrigin, type RegistryOnChain } from '../registry/registry-contracts';
import { CatchUpReport, newFeedStatus, setState, type FeedStatus } from './feed-status';
import { BlockAlarm, followChain, type ChainFollowing, type Sighting } from './follow-chain';
import { KnownEscrows } from './known-escrows';
import { expectLogs } from './pruned-logs';
import { readByReceipts, readRange } from './read-range';
import { recordEvents, type Recording } from './record-events';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** How often a standby process checks whether the feed has become free. */
const STANDBY_MS = 2_000;
/** Interval of the checks, before a rewind, whether the deliveries under way have ended. */
const IN_FLIGHT_POLL_MS = 50;
/** Blocks per request at first. */
const MOST_BLOCKS = 2_000;

/** Options for following the events of a registry. */
export interface FeedFollowing
  extends Recording, Pick<ChainFollowing, 'client' | 'readFinalBlock' | 'finalityDepth'> {
  registryAddress: string;
  /** Defaults to the registry's `genesis()`. */
  startBlock: number | undefined;
  pauses: Pauses;
  logger: Logger;
  mask: (text: string) => string;
  /** Rejects if the node is of another chain. */
  checkChain(this: void): Promise<void>;
  delivery: DeliveryOfFeed;
}

/** The delivery, as the reader of a feed uses it. */
interface DeliveryOfFeed {
  /** Delivers this feed. Called before it is read, and whenever reading starts again. */
  start(feed: string): Promise<void>;
  /** Events were stored for these channels or, if none are given, the feed was released. */
  wake(channels?: readonly number[]): void;
  /** Nothing may be sent until the next `wake`. */
  hold(): void;
}

/**
 * Reads the registry's events from the stored cursor and stores them, until it is stopped. If the node fails,
 * it is retried from the same cursor after a growing pause. An error that only an operator can fix is logged
 * and ends this.
 */
export class RegistryFollower {
  readonly status: FeedStatus;
  readonly #options: FeedFollowing;
  readonly #name: RegistryName;
  readonly #findRegistry: () => Promise<RegistryOnChain>;
  readonly #span = new BlockSpan(MOST_BLOCKS);
  /** A catch-up goes on when the node fails. */
  readonly #catchUp: CatchUpReport;
  /** Blocks to read again once they have been read, because an event of theirs is missing. */
  readonly #again = new Set<number>();
  readonly #stopping = new AbortController();
  readonly #finished: Promise<void>;
  #escrows: KnownEscrows | undefined;
  #opened: string | undefined;
  #hasRight = false;
  #failures = 0;
  /** Ends the pause before the next look at the chain. */
  #wake = (): void => undefined;

  constructor(options: FeedFollowing) {
    this.#options = options;
    const { chainId, registryAddress } = options.identity;
    this.#name = registryName(chainId, registryAddress);
    this.status = newFeedStatus(options.time.now());
    this.#findRegistry = createRegistryFinder(options.client, options.registryAddress);
    this.#catchUp = new CatchUpReport(this.status, options);
    this.#finished = this.#run(this.#stopping.signal).finally(() => this.#catchUp.stop());
  }

  /** The feed that is read or, in standby, was opened last. Undefined if none was yet. */
  get opened(): string | undefined {
    return this.#opened;
  }

  /** Whether this process reads the feed, or no process does. */
  async isReader(): Promise<boolean> {
    if (this.#hasRight || this.status.state === 'standby') return this.#hasRight;
    return !(await this.#options.database.isRightTaken(this.#name));
  }

  /** Reads a block again after it has been read, because an event of its transactions is missing. */
  readAgain(block: number): void {
    this.#again.add(block);
    this.#wake();
  }

  /** Stops reading; resolves when the events being stored are stored. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#finished;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { logger, time } = this.#options;
    const { status } = this;
    while (!signal.aborted) {
      try {
        const ended = await this.#followFeed(signal);
        if (ended !== 'standby') continue;
        if (status.state !== 'standby') logger.info('another process reads this registry: standing by');
        setState(status, 'standby', time.now());
        await pause(time, STANDBY_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        const reason = messageOf(error);
        const failure = this.#catchUp.slowedBy(error);
        if (error instanceof ServiceError && !error.retryable) {
          setState(status, 'stopped', time.now(), failure);
          logger.fatal({ error, code: error.code }, `events of the registry are no longer read: ${reason}`);
          return;
        }
        setState(status, 'failing', time.now(), failure);
        const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
        const what = nodeFailure(error) ? 'the chain cannot be read' : 'events cannot be stored';
        logger.warn({ error, retryInMs: pauseMs }, `${what}: ${reason}`);
        await pause(time, pauseMs, signal);
      }
    }
  }

  /**
   * Follows a feed until the signal aborts or another process takes over.
   *
   * @returns `standby` if another process reads the feed.
   */
  async #followFeed(stop: AbortSignal): Promise<'ended' | 'standby'> {
    const { client, time, database, pauses, startBlock, finalityDepth, checkChain, delivery } = this.#options;
    await untilAborted(stop, checkChain());
    const registry = await untilAborted(stop, this.#findRegistry());
    const { origin } = registry;
    // Nodes with other blocks name the feed of a registry differently.
    const right = await database.takeRight(this.#name);
    try {
      const feed = await untilAborted(stop, nameFeed(this.#options, registry));
      // Another process reads the feed, or the chain was replaced.
      if (right === undefined || this.#opened !== feed) {
        this.#catchUp.forget();
        this.#escrows = undefined;
      }
      if (right === undefined) {
        this.#opened = feed;
        await delivery.start(feed);
        return 'standby';
      }
      const signal = AbortSignal.any([stop, right.lost]);
      const alarm = new BlockAlarm(time, client, pauses);
      this.#wake = alarm.wake;
      this.#hasRight = true;
      try {
        const first = startBlock ?? registry.genesisBlock;
        const { cursor, ...open } = await openFeed(database.db, feed, first, time.now());
        // Only now: openFeed holds the feed until the blocks read earlier have been compared with the chain.
        this.#opened = feed;
        await delivery.start(feed);
        const escrows = (this.#escrows ??= new KnownEscrows(registry, finalityDepth));
        // The blocks that were read but not recorded may be of another branch.
        escrows.rewindTo(cursor.nextBlock - 1);
        const { slowedBy } = this.#catchUp;
        const reading = { ...this.#options, escrows, origin, span: this.#span, slowedBy };
        await this.#takeSightings(open, { ...reading, cursor, alarm, signal });
        return 'ended';
      } finally {
        alarm.stop();
        this.#hasRight = false;
        // Another process may read from here on.
        if (right.lost.aborted) this.#escrows = undefined;
      }
    } finally {
      await right?.release();
    }
  }

  async #takeSightings(open: OpenFeed, following: ChainFollowing): Promise<void> {
    const { logger, lifecycle } = this.#options;
    const { status } = this;
    const isNew = following.cursor.kept.every(({ hash }) => hash === undefined);
    let isHeld = true;
    let isFirst = true;
    let isLogged = false;
    for await (const sighting of followChain(following)) {
      const { headBlock, finalBlock, nextBlock } = sighting;
      isHeld = await this.#take(open, sighting, isHeld, following.signal);
      Object.assign(status, { nextBlock, headBlock, finalBlock: finalBlock < 0 ? undefined : finalBlock });
      this.#catchUp.noteBlocks(finalBlock);
      lifecycle.emit('looked', this.#name);
      const isBehind = sighting.kind === 'unchanged' && !sighting.isAllThere && isHeld;
      if (isBehind && isNew) this.#waitForStart(sighting, isLogged);
      else if (isBehind && !isLogged)
        logger.warn(
          { nextBlock, headBlock },
          'the node lacks blocks that were read before: deliveries are held until it has them',
        );
      isLogged ||= isBehind;
      // The first sighting only shows that the earlier blocks are still there, not that more can be read.
      const isRead = sighting.kind === 'range' || sighting.kind === 'unchanged';
      if (isRead && !isFirst && !isBehind) this.#noteRead();
      isFirst = false;
      if (!isHeld) await this.#readBlocksAgain(open, following, nextBlock);
    }
  }

  /** The chain was read successfully. */
  #noteRead(): void {
    const { logger, time } = this.#options;
    if (this.#failures > 0) logger.info('the chain can be read again');
    this.#failures = 0;
    setState(this.status, 'following', time.now());
  }

  /** Shows that the feed waits for its first block. */
  #waitForStart({ nextBlock, headBlock }: Sighting, isLogged: boolean): void {
    const { time, logger } = this.#options;
    const code = 'START_BLOCK_AHEAD';
    const reason =
      `The feed begins with block ${nextBlock}, and the newest block is ${headBlock}. ` +
      'If it should begin earlier, correct START_BLOCK, or the startBlock of the registry.';
    setState(this.status, 'starting', time.now(), { code, reason });
    if (!isLogged) logger.warn({ nextBlock, headBlock, code }, reason);
  }

  /**
   * Reads blocks again from the receipts of all their transactions, and records the events that are missing.
   * They are sent after later events of their token that were recorded before.
   */
  async #readBlocksAgain(open: OpenFeed, chain: ChainFollowing, nextBlock: number): Promise<void> {
    const { logger, delivery } = this.#options;
    for (const number of this.#again) {
      if (number >= nextBlock) continue;
      // A block that cannot be read is not repeated by itself: the feed would stand still for it.
      this.#again.delete(number);
      try {
        const { events } = await readByReceipts(chain, await existingBlock(chain.client, number));
        const { added, channels } = await recordEvents(this.#options, open, { events });
        if (added > 0) delivery.wake(channels);
        logger.warn({ block: number, events: added }, 'a block was read again: the node had left events out');
      } catch (error) {
        logger.warn({ error, block: number }, `a block cannot be read again: ${messageOf(error)}`);
      }
    }
  }

  /** Handles a sighting; returns whether the feed's deliveries are held. */
  async #take(open: OpenFeed, sighting: Sighting, isHeld: boolean, signal: AbortSignal): Promise<boolean> {
    const { database, logger, delivery } = this.#options;
    switch (sighting.kind) {
      case 'range': {
        const { fromBlock, toBlock } = sighting;
        const { added, channels } = await recordEvents(this.#options, open, sighting);
        if (added > 0) logger.info({ events: added, fromBlock, toBlock }, 'events recorded');
        if (isHeld) delivery.wake();
        else if (channels.length > 0) delivery.wake(channels);
        return false;
      }
      case 'mismatch':
        // Until the common ancestor is known, waiting events may be of orphaned blocks.
        await setHeld(database.db, open, 1);
        delivery.hold();
        return true;
      case 'reorganised':
        return !(await this.#rewind(open, sighting.ancestor, signal));
      case 'unchanged':
        if (!isHeld || !sighting.isAllThere) return isHeld;
        await setHeld(database.db, open, 0);
        delivery.wake();
        return false;
    }
  }

  /**
   * Rewinds the feed once the deliveries under way have ended: their outcome decides whether an event becomes
   * an orphan. Returns false if it was aborted.
   */
  async #rewind(open: OpenFeed, ancestor: KeptBlock, signal: AbortSignal): Promise<boolean> {
    const { database, time, logger, delivery } = this.#options;
    let rewound = await rewindFeed(database, open, ancestor, time.now());
    while (rewound === 'in flight' && !signal.aborted) {
      await pause(time, IN_FLIGHT_POLL_MS, signal);
      rewound = await rewindFeed(database, open, ancestor, time.now());
    }
    if (rewound === 'in flight') return false;
    const { withdrawn, orphaned } = rewound;
    const figures = { ancestor: ancestor.number, withdrawn, orphaned: orphaned.length };
    logger.warn(figures, 'chain reorganised');
    for (const event of orphaned) {
      if (event.outcome === 'delivered') logger.error(event, 'delivered event orphaned');
      else logger.warn(event, 'event orphaned after failed attempts');
    }
    delivery.wake();
    return true;
  }
}

/** The parts that name a feed. */
type FeedNaming = Pick<FeedFollowing, 'client' | 'startBlock'> & {
  identity: Pick<RegistryIdentity, 'chainId' | 'registryAddress'>;
  database: Pick<Database, 'db'>;
};

/**
 * The name of the registry's feed: it has the hash of block 0 or, if the node does not have that, of the
 * registry's first block, or of the first block to read. A feed that was named by another of these goes on. A
 * local chain that was restarted has the same addresses and other blocks: it gets another feed.
 *
 * @throws ChainError LOGS_PRUNED if the node does not have the first block that a new feed reads.
 */
export async function nameFeed(
  { client, startBlock, identity: { chainId, registryAddress }, database: { db } }: FeedNaming,
  { origin, genesisBlock }: RegistryOnChain,
): Promise<string> {
  const registry = registryName(chainId, registryAddress);
  const nameBy = ({ hash }: ChainOrigin): string => `${registry}:${hash.slice(2, 18)}`;
  const feeds = await findAllFeeds(db, registry);
  const named = (block: ChainOrigin | undefined): string | undefined =>
    feeds.find((feed) => block !== undefined && feed === nameBy(block));
  const known = named(origin);
  if (known !== undefined) return known;
  const newest = feeds.at(-1);
  const mayBeAnother = networkOfChain(chainId).local && origin?.number === 0;
  if (newest !== undefined && !mayBeAnother) return newest;
  const number = startBlock ?? genesisBlock;
  const first = await blockIfThere(client, Math.min(number, await headNumberOf(client)));
  const again = named(first) ?? named(await blockIfThere(client, genesisBlock));
  if (again !== undefined) return again;
  if (first !== undefined) return nameBy(origin ?? first);
  await expectLogs(client, registryAddress, number);
  throw new ChainError('BLOCK_MISSING', `The node lacks block ${number} at times.`);
}

/** The registry whose events are restored. Blocks before `startBlock` were never read. */
type PurgedRegistry = Pick<
  FeedFollowing,
  'client' | 'registryAddress' | 'identity' | 'startBlock' | 'database' | 'time'
>;

/**
 * Reads events from the chain again that were removed because they were old, the newest first: if it ends
 * early, or the signal aborts, it goes on from there the next time.
 *
 * @throws ChainError LOGS_PRUNED if the node does not have the oldest block any more, or removed its logs.
 */
export async function restorePurged(
  { client, registryAddress, identity, startBlock, database, time }: PurgedRegistry,
  feed: number,
  { fromBlock, upTo, signal }: { fromBlock: number; upTo: number; signal: AbortSignal },
): Promise<void> {
  const finding = createRegistryFinder(client, registryAddress)();
  const registry = await untilAborted(signal, finding);
  const escrows = new KnownEscrows(registry, 0);
  const span = new BlockSpan(MOST_BLOCKS);
  const firstRead = startBlock ?? registry.genesisBlock;
  const oldest = Math.min(Math.max(fromBlock, firstRead), upTo);
  await untilAborted(signal, expectLogs(client, registryAddress, oldest, { signal }));
  for (let last = upTo; last >= oldest && !signal.aborted;) {
    const first = Math.max(last - span.blocks() + 1, oldest);
    const blocks = Promise.all([existingBlock(client, first), existingBlock(client, last)]);
    const reading = blocks.then((both) => readRange({ client, escrows }, ...both));
    const read = await untilAborted(signal, reading).catch((error: unknown) => {
      if (!signal.aborted && span.shrink()) return undefined;
      throw error;
    });
    if (read === undefined) continue;
    // Earlier blocks were never read, so the last range reaches down to block 0.
    const from = first <= firstRead ? 0 : first;
    const range = { events: read.events, fromBlock: from, toBlock: last };
    if (!(await restoreEvents(database, feed, identity, range, time.now()))) return;
    span.grow();
    last = first - 1;
  }
}
