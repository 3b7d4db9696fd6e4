import { setTimeout as sleep } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { RpcClient } from '../chain/rpc-client';
import type { Clock } from '../clock';
import type { Schema } from '../database/schema';
import { ServiceError, messageOf } from '../errors';
import type { Logger } from '../logger';
import type { RegistryIdentity } from '../outbox/cloud-event';
import { openFeed } from '../outbox/feed-cursor';
import { recordRange } from '../outbox/record-range';
import { findRegistry, type RegistryOnChain } from './registry-contracts';
import { watch, type BlockRange } from './watch';

/** What following a registry needs. */
export interface FollowOptions {
  client: RpcClient;
  registryAddress: string;
  identity: RegistryIdentity;
  /** Undefined: the registry's `genesis()`. */
  startBlock: number | undefined;
  confirmations: number;
  pollIntervalMs: number;
  db: Kysely<Schema>;
  clock: Clock;
  logger: Logger;
  /** Rejects when the node is of the wrong chain. */
  checkChain(): Promise<void>;
  /** Called with the feed's name before it is read, and again whenever reading begins anew. */
  onOpened(feed: string): Promise<void>;
  /** Called after events were stored. */
  onRecorded(): void;
}

/** A registry being followed. */
export interface Follower {
  /** Reads nothing more; resolves when what is being stored is stored. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Reads the registry's events from the stored cursor on and stores them, for ever. A node that fails is asked again, after a
 * growing pause, from the same cursor. An error that nobody but a person can mend ends the following and is logged as such.
 */
export function followRegistry(options: FollowOptions): Follower {
  const abort = new AbortController();
  const finished = run(options, abort.signal);
  return {
    async stop() {
      abort.abort();
      await finished;
    },
  };
}

async function run(options: FollowOptions, signal: AbortSignal): Promise<void> {
  const { logger } = options;
  let failures = 0;
  const succeeded = (): void => {
    if (failures > 0) logger.info('the chain can be read again');
    failures = 0;
  };
  while (!signal.aborted) {
    try {
      await follow(options, signal, succeeded);
    } catch (error) {
      if (error instanceof ServiceError && !error.retryable) {
        logger.fatal(
          { error, code: error.code },
          `events of the registry are no longer read: ${error.message}`,
        );
        return;
      }
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LONGEST_PAUSE_MS);
      logger.warn({ error, retryInMs: pauseMs }, `the chain cannot be read: ${messageOf(error)}`);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function follow(options: FollowOptions, signal: AbortSignal, succeeded: () => void): Promise<void> {
  const { client, db, identity, confirmations, pollIntervalMs } = options;
  await options.checkChain();
  const registry = await findRegistry(client, options.registryAddress);
  const feed = feedName(identity, registry);
  const cursor = await openFeed(db, feed, options.startBlock ?? registry.genesisBlock);
  await options.onOpened(feed);
  const { contracts, chainGenesisHash: genesisHash } = registry;
  const onPolled = succeeded;
  const ranges = watch({
    client,
    contracts,
    cursor,
    genesisHash,
    confirmations,
    pollIntervalMs,
    onPolled,
    signal,
  });
  for await (const range of ranges) {
    await store(options, feed, range);
    succeeded();
  }
}

async function store(options: FollowOptions, feed: string, range: BlockRange): Promise<void> {
  const added = await recordRange(options.db, feed, options.identity, range, options.clock.now());
  if (added === 0) return;
  const { fromBlock, toBlock } = range;
  options.logger.info({ events: added, fromBlock, toBlock }, 'events recorded');
  options.onRecorded();
}

/** A chain that was started anew gives the same addresses to other contracts: its block 0 is part of the name. */
function feedName(
  { chainId, registryAddress }: RegistryIdentity,
  { chainGenesisHash }: RegistryOnChain,
): string {
  return `${chainId}:${registryAddress}:${chainGenesisHash.slice(2, 18)}`;
}
