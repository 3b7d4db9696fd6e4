import { setTimeout as sleep } from 'node:timers/promises';
import type { RpcClient } from '../chain/rpc-client';
import type { Clock } from '../clock';
import type { Database } from '../database/database';
import { codeOf } from '../errors';
import type { Logger } from '../logger';
import type { RegistryIdentity } from '../outbox/cloud-event';
import { holdFeed, openFeed, releaseFeed, type KeptBlock, type OpenFeed } from '../outbox/feed-cursor';
import { recordRange } from '../outbox/record-range';
import { rewindFeed, type Rewound } from '../outbox/rewind-feed';
import { createBlockAlarm, type BlockAlarm } from './block-alarm';
import type { FeedStatus } from './feed-status';
import { findRegistry, type RegistryOnChain } from './registry-contracts';
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
  pollIntervalMs: number;
  database: Database;
  clock: Clock;
  logger: Logger;
  mask: (text: string) => string;
  /** Rejects when the node is of the wrong chain. */
  checkChain(): Promise<void>;
  /** Called with the feed's name before it is read, and again whenever reading begins anew. */
  onOpened(feed: string): Promise<void>;
  /** Called when deliveries may have become due: after events were stored (how many), or a feed was released. */
  onDue(events: number): void;
}

/** How often it is looked whether the deliveries under way have ended, before a rewind. */
const IN_FLIGHT_POLL_MS = 50;

/**
 * Reads a feed until the signal aborts or the right to it is lost.
 *
 * @returns `standby` when another process reads it.
 */
export async function readFeed(
  options: FeedReading,
  status: FeedStatus,
  onRead: () => void,
  stop: AbortSignal,
): Promise<'ended' | 'standby'> {
  await options.checkChain();
  const registry = await findRegistry(options.client, options.registryAddress);
  const feed = feedName(options.identity, registry);
  const leadership = await options.database.lead(feed);
  await options.onOpened(feed);
  if (leadership === undefined) return 'standby';
  const signal = AbortSignal.any([stop, leadership.lost]);
  const alarm = createBlockAlarm(options.client, options.pollIntervalMs);
  const { db } = options.database;
  try {
    const open = await openFeed(db, feed, options.startBlock ?? registry.genesisBlock);
    await follow(options, status, { open, registry, alarm, signal, onRead });
    return 'ended';
  } finally {
    alarm.stop();
    await leadership.release();
  }
}

interface Following {
  open: OpenFeed;
  registry: RegistryOnChain;
  alarm: BlockAlarm;
  signal: AbortSignal;
  onRead: () => void;
}

async function follow(
  options: FeedReading,
  status: FeedStatus,
  { open, registry, alarm, signal, onRead }: Following,
): Promise<void> {
  const { cursor } = open;
  try {
    const { client, confirmations, finalityDepth } = options;
    const { contracts, chainGenesisHash: genesisHash } = registry;
    const sightings = watch({
      client,
      contracts,
      cursor,
      genesisHash,
      confirmations,
      finalityDepth,
      alarm,
      signal,
    });
    let isHeld = true;
    for await (const sighting of sightings) {
      isHeld = await take(options, open, sighting, isHeld, signal);
      status.headBlock = sighting.headBlock;
      if (sighting.kind === 'range') status.nextBlock = sighting.toBlock + 1;
      if (sighting.kind === 'reorganised') status.nextBlock = sighting.ancestor.number + 1;
      status.nextBlock ??= cursor.nextBlock;
      onRead();
    }
  } catch (error) {
    // Nobody knows which of the events that wait are still on the chain.
    if (codeOf(error) === 'CHAIN_REORGANISED') await holdFeed(options.database.db, open);
    throw error;
  }
}

/** Does what a sighting asks for; gives whether the feed's deliveries are still held. */
async function take(
  options: FeedReading,
  open: OpenFeed,
  sighting: Sighting,
  isHeld: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  if (sighting.kind === 'range') {
    const events = await store(options, open, sighting);
    if (events > 0 || isHeld) options.onDue(events);
  } else if (sighting.kind === 'reorganised') {
    await rewind(options, open, sighting.ancestor, signal);
  } else if (isHeld) {
    await releaseFeed(options.database.db, open);
    options.onDue(0);
  }
  return false;
}

async function store(options: FeedReading, open: OpenFeed, range: BlockRange): Promise<number> {
  const { events, blocks, oldestKept, fromBlock, toBlock } = range;
  const { database, identity, clock, logger } = options;
  const recorded = { events, blocks, oldestKept, nextBlock: toBlock + 1 };
  const added = await recordRange(database, open, identity, recorded, clock.now());
  if (added > 0) logger.info({ events: added, fromBlock, toBlock }, 'events recorded');
  return added;
}

/** Waits for deliveries under way: whether they succeed decides what their events are. */
async function rewind(
  options: FeedReading,
  open: OpenFeed,
  ancestor: KeptBlock,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock } = options;
  await holdFeed(database.db, open);
  let rewound = await rewindFeed(database, open, ancestor, clock.now());
  while (rewound === 'in flight' && !signal.aborted) {
    await sleep(IN_FLIGHT_POLL_MS);
    rewound = await rewindFeed(database, open, ancestor, clock.now());
  }
  if (rewound === 'in flight') return;
  tell(options.logger, ancestor, rewound);
  options.onDue(0);
}

function tell(logger: Logger, ancestor: KeptBlock, { withdrawn, orphaned }: Rewound): void {
  const figures = { ancestor: ancestor.number, withdrawn, orphaned: orphaned.length };
  logger.warn(figures, 'chain reorganised');
  for (const event of orphaned) {
    if (event.outcome === 'delivered') logger.error(event, 'delivered event orphaned');
    else logger.warn(event, 'event orphaned after failed attempts');
  }
}

/** A chain that was started anew gives the same addresses to other contracts: its block 0 is part of the name. */
function feedName(
  { chainId, registryAddress }: RegistryIdentity,
  { chainGenesisHash }: RegistryOnChain,
): string {
  return `${chainId}:${registryAddress}:${chainGenesisHash.slice(2, 18)}`;
}
