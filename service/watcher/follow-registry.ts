import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../base/clock';
import { codeOf, messageOf, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { pause, untilAborted } from '../base/waiting';
import { registryName } from '../base/registry-name';
import { createBlockSpan, existingBlock, type BlockSpan } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import type { Pauses } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { RegistryIdentity } from '../events/cloud-event';
import { openFeed, setHeld, type FeedCursor, type KeptBlock, type OpenFeed } from '../outbox/feeds';
import { recordRange } from '../outbox/record-range';
import { rewindFeed } from '../outbox/rewind-feed';
import { createRegistryFinder, type RegistryOnChain } from '../registry/registry-contracts';
import { newFeedStatus, reportCatchUp, setState, type CatchUpReport, type FeedStatus } from './feed-status';
import { createBlockAlarm, followChain, type BlockAlarm, type Sighting } from './follow-chain';
import { readByReceipts } from './read-range';

/** A registry that is being followed. */
interface Follower {
  readonly status: Readonly<FeedStatus>;
  /** Reads a block again after it has been read, because an event of its transactions is missing. */
  readAgain(this: void, block: number): void;
  /** Stops reading; resolves when the events being stored are stored. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** How often a standby process checks whether the feed has become free. */
const STANDBY_MS = 2_000;

/**
 * Reads the registry's events from the stored cursor and stores them, until it is stopped. If the node fails,
 * it is retried from the same cursor after a growing pause. An error that only an operator can fix is logged
 * and ends this.
 */
export function followRegistry(options: FeedFollowing): Follower {
  const abort = new AbortController();
  const status = newFeedStatus(options.clock.now());
  const memory: FeedMemory = {
    feed: undefined,
    findRegistry: createRegistryFinder(options.client, options.registryAddress),
    span: createBlockSpan(MOST_BLOCKS),
    status,
    catchUp: reportCatchUp(status, options),
    again: new Set(),
    wake: () => undefined,
  };
  const finished = run(options, memory, abort.signal).finally(() => memory.catchUp.stop());
  return {
    status,
    readAgain(block) {
      memory.again.add(block);
      memory.wake();
    },
    async stop() {
      abort.abort();
      await finished;
    },
  };
}

async function run(options: FeedFollowing, memory: FeedMemory, signal: AbortSignal): Promise<void> {
  const { logger, clock } = options;
  const { status } = memory;
  let failures = 0;
  const onRead = (): void => {
    if (failures > 0) logger.info('the chain can be read again');
    failures = 0;
    setState(status, 'following', clock.now());
  };
  while (!signal.aborted) {
    try {
      const ended = await followFeed(options, memory, onRead, signal);
      if (ended !== 'standby') continue;
      if (status.state !== 'standby') logger.info('another process reads this registry: standing by');
      setState(status, 'standby', clock.now());
      await pause(STANDBY_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      // The status is public, so errors of other code are shown only as "see the log".
      const shown = error instanceof ServiceError ? options.mask(reason) : 'see the log';
      const described = { code: codeOf(error), reason: shown };
      if (error instanceof ServiceError && !error.retryable) {
        setState(status, 'stopped', clock.now(), described);
        logger.fatal({ error, code: error.code }, `events of the registry are no longer read: ${reason}`);
        return;
      }
      setState(status, 'failing', clock.now(), described);
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LONGEST_PAUSE_MS);
      logger.warn({ error, retryInMs: pauseMs }, `the chain cannot be read: ${reason}`);
      await pause(pauseMs, signal);
    }
  }
}

/** Options for following the events of a registry. */
interface FeedFollowing {
  client: RpcClient;
  registryAddress: string;
  identity: RegistryIdentity;
  /** Defaults to the registry's `genesis()`. */
  startBlock: number | undefined;
  confirmations: number;
  finalityDepth: number;
  pauses: Pauses;
  /** Interval of the log lines about a catch-up. */
  progressEveryMs: number;
  database: Database;
  clock: Clock;
  logger: Logger;
  mask: (text: string) => string;
  /** Rejects if the node is of another chain. */
  checkChain(): Promise<void>;
  /** Called with the feed's name before it is read, and whenever reading starts again. */
  onOpened(feed: string): Promise<void>;
  /**
   * Called when deliveries may have become due: `events` events were stored for these channels, or the feed
   * was released.
   */
  onDue(this: void, events: number, channels?: readonly number[]): void;
  /** Called when nothing may be sent until the next `onDue`. */
  onHeld(): void;
}

/** Interval of the checks, before a rewind, whether the deliveries under way have ended. */
const IN_FLIGHT_POLL_MS = 50;
const MOST_BLOCKS = 2_000;

/** State that is kept between two readings of a feed. */
interface FeedMemory {
  /** The feed read last. Undefined if none was read yet. */
  feed: string | undefined;
  findRegistry: () => Promise<RegistryOnChain>;
  span: BlockSpan;
  status: FeedStatus;
  /** Kept here because a catch-up goes on when the node fails. Stop it at the end. */
  catchUp: CatchUpReport;
  /** Blocks to read again once they have been read, because an event of theirs is missing. */
  again: Set<number>;
  /** Ends the pause before the next look at the chain. */
  wake: () => void;
}

/**
 * Follows a feed until the signal aborts or another process takes over.
 *
 * @param onRead called each time the chain was read successfully.
 * @returns `standby` if another process reads the feed.
 */
async function followFeed(
  options: FeedFollowing,
  memory: FeedMemory,
  onRead: () => void,
  stop: AbortSignal,
): Promise<'ended' | 'standby'> {
  await untilAborted(stop, options.checkChain());
  const registry = await untilAborted(stop, memory.findRegistry());
  const feed = feedName(options.identity, registry);
  const right = await options.database.takeRight(feed);
  // Another process reads the feed, or the chain was replaced.
  if (right === undefined || memory.feed !== feed) memory.catchUp.forget();
  memory.feed = feed;
  if (right === undefined) {
    await options.onOpened(feed);
    return 'standby';
  }
  const signal = AbortSignal.any([stop, right.lost]);
  const alarm = createBlockAlarm(options.client, options.pauses);
  memory.wake = alarm.wake;
  try {
    const first = options.startBlock ?? registry.genesisBlock;
    const { cursor, ...open } = await openFeed(options.database.db, feed, first, options.clock.now());
    // Only now: openFeed holds the feed until the blocks read earlier have been compared with the chain.
    await options.onOpened(feed);
    await takeSightings(options, memory, { open, cursor, registry, alarm, signal }, onRead);
    return 'ended';
  } finally {
    alarm.stop();
    await right.release();
  }
}

async function takeSightings(
  options: FeedFollowing,
  { span, status, catchUp, again }: FeedMemory,
  following: {
    open: OpenFeed;
    cursor: FeedCursor;
    registry: RegistryOnChain;
    alarm: BlockAlarm;
    signal: AbortSignal;
  },
  onRead: () => void,
): Promise<void> {
  const { open, cursor, registry, alarm, signal } = following;
  const { client, confirmations, finalityDepth } = options;
  const { contracts, chainGenesisHash: genesisHash } = registry;
  const chain = { client, contracts, genesisHash, confirmations, finalityDepth };
  const isNew = cursor.kept.every(({ hash }) => hash === undefined);
  let isHeld = true;
  let isFirst = true;
  let hasTold = false;
  for await (const sighting of followChain({ ...chain, cursor, span, alarm, signal })) {
    isHeld = await take(options, open, sighting, isHeld, signal);
    status.headBlock = sighting.headBlock;
    status.nextBlock = sighting.nextBlock;
    catchUp.seen(sighting.headBlock - confirmations);
    const isBehind = sighting.kind === 'unchanged' && !sighting.isAllThere && isHeld;
    if (isBehind && isNew) waitForStart(options, status, sighting, hasTold);
    else if (isBehind && !hasTold)
      options.logger.warn(
        { nextBlock: status.nextBlock, headBlock: sighting.headBlock },
        'the node lacks blocks that were read before: deliveries are held until it has them',
      );
    hasTold ||= isBehind;
    // The first sighting only shows that the earlier blocks are still there, not that more can be read.
    const isRead = sighting.kind === 'range' || sighting.kind === 'unchanged';
    if (isRead && !isFirst && !isBehind) onRead();
    isFirst = false;
    if (!isHeld) await readBlocksAgain(options, open, registry, again, sighting.nextBlock);
  }
}

/** Shows that the feed waits for its first block. */
function waitForStart(
  { clock, logger }: FeedFollowing,
  status: FeedStatus,
  { nextBlock, headBlock }: Sighting,
  hasTold: boolean,
): void {
  const reason =
    `The feed begins with block ${nextBlock}, and the newest block is ${headBlock}. ` +
    'If it should begin earlier, correct START_BLOCK, or the startBlock of the registry.';
  setState(status, 'starting', clock.now(), { code: 'START_BLOCK_AHEAD', reason });
  if (!hasTold) logger.warn({ nextBlock, headBlock, code: status.code }, reason);
}

/**
 * Reads blocks again from the receipts of all their transactions, and records the events that are missing.
 * They are sent after later events of their token that were recorded before.
 */
async function readBlocksAgain(
  { client, database, identity, clock, logger, onDue }: FeedFollowing,
  open: OpenFeed,
  { contracts }: RegistryOnChain,
  again: Set<number>,
  nextBlock: number,
): Promise<void> {
  for (const number of again) {
    if (number >= nextBlock) continue;
    // A block that cannot be read is not repeated by itself: the feed would stand still for it.
    again.delete(number);
    try {
      const { events } = await readByReceipts(client, contracts, await existingBlock(client, number));
      const { added, channels } = await recordRange(database, open, identity, { events }, clock.now());
      if (added > 0) onDue(added, channels);
      logger.warn({ block: number, events: added }, 'a block was read again: the node had left events out');
    } catch (error) {
      logger.warn({ error, block: number }, `a block cannot be read again: ${messageOf(error)}`);
    }
  }
}

/** Handles a sighting; returns whether the feed's deliveries are held. */
async function take(
  options: FeedFollowing,
  open: OpenFeed,
  sighting: Sighting,
  isHeld: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { database, identity, clock, logger } = options;
  switch (sighting.kind) {
    case 'range': {
      const { fromBlock, toBlock } = sighting;
      const { added, channels } = await recordRange(database, open, identity, sighting, clock.now());
      if (added > 0) logger.info({ events: added, fromBlock, toBlock }, 'events recorded');
      if (added > 0 || channels.length > 0 || isHeld) options.onDue(added, isHeld ? undefined : channels);
      return false;
    }
    case 'mismatch':
      // Until the common ancestor is known, waiting events may be of orphaned blocks.
      await setHeld(database.db, open, 1);
      options.onHeld();
      return true;
    case 'reorganised':
      return !(await rewind(options, open, sighting.ancestor, signal));
    case 'unchanged':
      if (!isHeld || !sighting.isAllThere) return isHeld;
      await setHeld(database.db, open, 0);
      options.onDue(0);
      return false;
  }
}

/**
 * Rewinds the feed once the deliveries under way have ended: their outcome decides whether an event becomes
 * an orphan. Returns false if it was aborted.
 */
async function rewind(
  options: FeedFollowing,
  open: OpenFeed,
  ancestor: KeptBlock,
  signal: AbortSignal,
): Promise<boolean> {
  const { database, clock, logger } = options;
  let rewound = await rewindFeed(database, open, ancestor, clock.now());
  while (rewound === 'in flight' && !signal.aborted) {
    await sleep(IN_FLIGHT_POLL_MS);
    rewound = await rewindFeed(database, open, ancestor, clock.now());
  }
  if (rewound === 'in flight') return false;
  const { withdrawn, orphaned } = rewound;
  const figures = { ancestor: ancestor.number, withdrawn, orphaned: orphaned.length };
  logger.warn(figures, 'chain reorganised');
  for (const event of orphaned) {
    if (event.outcome === 'delivered') logger.error(event, 'delivered event orphaned');
    else logger.warn(event, 'event orphaned after failed attempts');
  }
  options.onDue(0);
  return true;
}

/**
 * Names a feed. A restarted local chain gives the same addresses to other contracts, so the name contains the
 * hash of block 0.
 */
function feedName(
  { chainId, registryAddress }: RegistryIdentity,
  { chainGenesisHash }: RegistryOnChain,
): string {
  return `${registryName(chainId, registryAddress)}:${chainGenesisHash.slice(2, 18)}`;
}
