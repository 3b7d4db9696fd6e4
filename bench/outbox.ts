import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import pino from 'pino';
import { createLifecycle } from '../service/base/lifecycle';
import { systemTime } from '../service/base/time';
import { createLogger } from '../service/base/logger';
import { secretMasker } from '../service/base/mask-secrets';
import { signingKeyOf } from '../service/base/signing-keys';
import type { Database } from '../service/database/database';
import { createDeliverers } from '../service/delivery/deliverers';
import { createDeliverySlots } from '../service/delivery/delivery-slots';
import { createFeedDelivery, type FeedDelivery } from '../service/delivery/feed-delivery';
import { openFeed, setHeld, type OpenFeed } from '../service/outbox/feeds';
import { recordRange } from '../service/outbox/record-range';
import type { RegistryEvent } from '../service/registry/registry-event';
import { targetOf } from '../service/subscriptions/manage-subscriptions';
import { subscriptionOf } from '../service/subscriptions/stored-subscriptions';
import { ENGINES, newState, openState, type Engine } from '../test/helpers/database/engines';
import { eventIn, SAMPLE_REGISTRY } from '../test/helpers/database/sample-feed';
import { addSubscriptions } from '../test/helpers/database/subscriber';

/** Token ids are hashes, so these must be as long. */
const FIRST_TOKEN = 2n ** 255n;
const EVENTS_OF_A_TOKEN = 5;
const EVENTS_OF_A_RANGE = 1_000;

/** The engines that are installed. */
export async function installedEngines(): Promise<readonly Engine[]> {
  await using state = await newState('PostgreSQL');
  return state ? ENGINES : ['SQLite'];
}

/** Runs `use` with a new database and removes it afterwards. */
export async function withDatabase<Result>(
  engine: Engine,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  await using state = await newState(engine);
  if (!state) throw new Error(`${engine} is not installed`);
  await using database = await openState(state);
  return await use(database);
}

/** Records made-up events of a feed as the watcher does. They are due at once. */
export async function fillOutbox(database: Database, feed: string, events: number): Promise<OpenFeed> {
  const open = await openFeed(database.db, feed, 1, 1);
  const tokens = Math.ceil(events / EVENTS_OF_A_TOKEN);
  for (let first = 0; first < events; first += EVENTS_OF_A_RANGE) {
    const count = Math.min(EVENTS_OF_A_RANGE, events - first);
    // As on a chain, the events of a token are spread over the run.
    await recordBlock(database, open, 1, count, (index) => (first + index) % tokens);
  }
  await setHeld(database.db, open, 0);
  return open;
}

/** Records a block with events, by default each of another token. Returns the channels that they are for. */
export async function recordBlock(
  database: Database,
  feed: OpenFeed,
  block: number,
  count: number,
  tokenOf = (index: number): number => index,
): Promise<readonly number[]> {
  const run = randomBytes(8).toString('hex');
  const events = Array.from({ length: count }, (_, index): RegistryEvent => {
    const transactionHash = `0x${run}${index.toString(16).padStart(48, '0')}`;
    return eventIn(block, FIRST_TOKEN + BigInt(tokenOf(index)), { transactionHash, logIndex: 3 });
  });
  const range = { events, blocks: [], oldestKept: 0, nextBlock: block + 1 };
  return (await recordRange(database, feed, SAMPLE_REGISTRY, range, Date.now())).channels;
}

/** Adds subscriptions with these members of a POST. */
export async function subscribe(
  database: Database,
  count: number,
  membersOf: (index: number) => { sink: string; filters?: object[]; config?: object },
): Promise<void> {
  const added = Array.from({ length: count }, (_, index) => ({
    members: membersOf(index),
    name: randomUUID(),
  }));
  await addSubscriptions(database, added);
}

/**
 * Delivers as a process of the service does, with signatures and log lines, to all subscriptions but
 * `default`.
 */
export function deliver(database: Database, connections = 1_000): FeedDelivery {
  // The lines are discarded when all of the work is done.
  const destination = pino.destination({ dest: '/dev/null', sync: true });
  const mask = secretMasker(['not-a-secret', 'nor-this']);
  const logger = createLogger({ level: 'info', mask, destination });
  const signingKeys = { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
  const delivery = createFeedDelivery({
    database,
    time: systemTime,
    logger,
    slots: createDeliverySlots({ most: connections, time: systemTime, logger }),
    deliverers: createDeliverers(database, { id: randomUUID(), time: systemTime, logger }),
    targetOf({ subscription, definition, secrets, state }) {
      if (definition === null) return undefined;
      const stored = subscriptionOf({ name: subscription, definition, secrets, state }, undefined);
      return targetOf(stored, signingKeys, { rules: { allowPrivate: true, allowLoopback: true }, lookup });
    },
    restorePurged: async () => undefined,
    lifecycle: createLifecycle(),
    registry: 'operations',
  });
  return { ...delivery, stop: () => delivery.stop().finally(() => destination.end()) };
}
