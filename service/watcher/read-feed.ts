import { setTimeout as sleep } from 'node:timers/promises';
import { createBlockSpan, type BlockSpan } from '../chain/block-span';
import type { RpcClient } from '../chain/rpc-client';
import type { Clock } from '../base/clock';
import type { Database } from '../database/database';
import type { Logger } from '../base/logger';
import type { RegistryIdentity } from '../outbox/cloud-event';
import { holdFeed, openFeed, releaseFeed, type KeptBlock, type OpenFeed } from '../outbox/feed-cursor';
import { recordRange } from '../outbox/record-range';
import { rewindFeed, type Rewound } from '../outbox/rewind-feed';
import { createRegistryFinder, type RegistryOnChain } from '../registry/registry-contracts';
import { untilAborted } from '../base/until-aborted';
import { createBlockAlarm, type BlockAlarm, type Pauses } from './block-alarm';
import { reportCatchUp, type CatchUpReport } from './catch-up';
import { newFeedStatus, type FeedStatus } from './feed-status';
import { watch, type BlockRange, type Sighting } from './watch';

/** What reading a registry's events needs. */
export interface FeedReading {
  client: RpcClient;
  registryAddress: string;
  identity: RegistryIdentity;
  /** Undefined: the registry's `genesis()`. */
  startBlock: number | undefined;
  confirmations: number;
  finalityDepth: number;
  pauses: Pauses;
  /** How often the log says how far a catch-up is. */
  progressEveryMs: number;
  database: Database;
  clock: Clock;
  logger: Logger;
  mask: (text: string) => string;
  /** Rejects when the node is of the wrong chain. */
  checkChain(): Promise<void>;
  /** Called with the feed's name before it is read, and again whenever reading begins anew. */
  onOpened(feed: string): Promise<void>;
  /**
   * Called when deliveries may have become due: after events were stored (how many), or a feed was released.
   */
  onDue(events: number): void;
  /** Called when nothing may be sent any more until `onDue` is called. */
  onHeld(): void;
}

/** How often it is looked whether the deliveries under way have ended, before a rewind. */
const IN_FLIGHT_POLL_MS = 50;
const MOST_BLOCKS = 2_000;

/** What lasts from one reading of a feed to the next. */
export interface FeedMemory {
  /** The feed that was read; undefined: none yet. */
  feed: string | undefined;
  findRegistry: () => Promise<RegistryOnChain>;
  span: BlockSpan;
  status: FeedStatus;
  /** A node that fails does not end a catch-up. To be stopped at the end. */
  catchUp: CatchUpReport;
}

/** The memory of a feed of which nothing has been read. */
export function newFeedMemory(options: FeedReading): FeedMemory {
  const { client, registryAddress, clock } = options;
  const status = newFeedStatus(clock.now());
  return {
    feed: undefined,
    findRegistry: createRegistryFinder(client, registryAddress),
    span: createBlockSpan(MOST_BLOCKS),
    status,
    catchUp: reportCatchUp(status, options),
  };
}

/**
 * Reads a feed until the signal aborts or the right to it is lost.
 *
 * @param onRead called whenever the chain could be read.
 * @returns `standby` when another process reads it.
 */
export async function readFeed(
  options: FeedReading,
  memory: FeedMemory,
  onRead: () => void,
  stop: AbortSignal,
): Promise<'ended' | 'standby'> {
  await untilAborted(stop, options.checkChain());
  const registry = await untilAborted(stop, memory.findRegistry());
  const feed = feedName(options.identity, registry);
  const leadership = await options.database.lead(feed);
  // Another process reads on, or another chain has taken the place of the one before.
  if (leadership === undefined || memory.feed !== feed) memory.catchUp.forget();
  memory.feed = feed;
  if (leadership === undefined) {
    await options.onOpened(feed);
    return 'standby';
  }
  const signal = AbortSignal.any([stop, leadership.lost]);
  const alarm = createBlockAlarm(options.client, options.pauses);
  try {
    const first = options.startBlock ?? registry.genesisBlock;
    const open = await openFeed(options.database.db, feed, first, options.clock.now());
    // Not before: the feed is held now, until what was read has been compared with the chain.
    await options.onOpened(feed);
    await follow(options, memory, { open, registry, alarm, signal }, onRead);
    return 'ended';
  } finally {
    alarm.stop();
    await leadership.release();
  }
}

async function follow(
  options: FeedReading,
  { span, status, catchUp }: FeedMemory,
  following: { open: OpenFeed; registry: RegistryOnChain; alarm: BlockAlarm; signal: AbortSignal },
  onRead: () => void,
): Promise<void> {
  const { open, registry, alarm, signal } = following;
  const { client, confirmations, finalityDepth } = options;
  const { contracts, chainGenesisHash: genesisHash } = registry;
  const { cursor } = open;
  const chain = { client, contracts, genesisHash, confirmations, finalityDepth };
  let isHeld = true;
  let isFirst = true;
  let hasTold = false;
  for await (const sighting of watch({ ...chain, cursor, span, alarm, signal })) {
    isHeld = await take(options, open, sighting, isHeld, signal);
    status.headBlock = sighting.headBlock;
    if (isFirst) status.nextBlock = cursor.nextBlock;
    if (sighting.kind === 'range') status.nextBlock = sighting.toBlock + 1;
    if (sighting.kind === 'reorganised') status.nextBlock = sighting.ancestor.number + 1;
    catchUp.seen(sighting.headBlock - confirmations);
    const isBehind = sighting.kind === 'unchanged' && !sighting.isAllThere && isHeld;
    if (isBehind && !hasTold) {
      options.logger.warn(
        { nextBlock: status.nextBlock, headBlock: sighting.headBlock },
        'the node does not have what was read before: deliveries are held until it has',
      );
      hasTold = true;
    }
    // That what was read is still there says nothing of whether more can be read.
    const isRead = sighting.kind === 'range' || sighting.kind === 'unchanged';
    if (isRead && !isFirst && !isBehind) onRead();
    isFirst = false;
  }
}

/** Does what a sighting asks for; gives whether the feed's deliveries are held. */
async function take(
  options: FeedReading,
  open: OpenFeed,
  sighting: Sighting,
  isHeld: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  switch (sighting.kind) {
    case 'range': {
      const events = await store(options, open, sighting);
      if (events > 0 || isHeld) options.onDue(events);
      return false;
    }
    case 'mismatch':
      // Until the common ancestor is known nobody can say which of the events that wait are still on the
      // chain.
      await holdFeed(options.database.db, open);
      options.onHeld();
      return true;
    case 'reorganised':
      return !(await rewind(options, open, sighting.ancestor, signal));
    case 'unchanged':
      if (!isHeld || !sighting.isAllThere) return isHeld;
      await releaseFeed(options.database.db, open);
      options.onDue(0);
      return false;
  }
}

async function store(options: FeedReading, open: OpenFeed, range: BlockRange): Promise<number> {
  const { events, blocks, oldestKept, fromBlock, toBlock } = range;
  const { database, identity, clock, logger } = options;
  const recorded = { events, blocks, oldestKept, nextBlock: toBlock + 1 };
  const added = await recordRange(database, open, identity, recorded, clock.now());
  if (added > 0) logger.info({ events: added, fromBlock, toBlock }, 'events recorded');
  return added;
}

/**
 * Waits for deliveries under way: whether they succeed decides what their events are. Gives whether it was
 * done.
 */
async function rewind(
  options: FeedReading,
  open: OpenFeed,
  ancestor: KeptBlock,
  signal: AbortSignal,
): Promise<boolean> {
  const { database, clock } = options;
  let rewound = await rewindFeed(database, open, ancestor, clock.now());
  while (rewound === 'in flight' && !signal.aborted) {
    await sleep(IN_FLIGHT_POLL_MS);
    rewound = await rewindFeed(database, open, ancestor, clock.now());
  }
  if (rewound === 'in flight') return false;
  tell(options.logger, ancestor, rewound);
  options.onDue(0);
  return true;
}

function tell(logger: Logger, ancestor: KeptBlock, { withdrawn, orphaned }: Rewound): void {
  const figures = { ancestor: ancestor.number, withdrawn, orphaned: orphaned.length };
  logger.warn(figures, 'chain reorganised');
  for (const event of orphaned) {
    if (event.outcome === 'delivered') logger.error(event, 'delivered event orphaned');
    else logger.warn(event, 'event orphaned after failed attempts');
  }
}

/**
 * A chain that was started anew gives the same addresses to other contracts: its block 0 is part of the name.
 */
function feedName(
  { chainId, registryAddress }: RegistryIdentity,
  { chainGenesisHash }: RegistryOnChain,
): string {
  return `${chainId}:${registryAddress}:${chainGenesisHash.slice(2, 18)}`;
}
