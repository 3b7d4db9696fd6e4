import { lookup } from 'node:dns';
// eslint-disable-next-line no-restricted-syntax -- real time: blocks come one after the other.
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import type { ChainEventPayload } from '../../../client/events';
import { createLifecycle } from '../../../service/base/lifecycle';
import { systemTime } from '../../../service/base/time';
import type { Database } from '../../../service/database/database';
import { createDeliverers, type Deliverers } from '../../../service/delivery/deliverers';
import { createDeliverySlots } from '../../../service/delivery/delivery-slots';
import { createFeedDelivery, type FeedDelivery } from '../../../service/delivery/feed-delivery';
import type { Channel } from '../../../service/outbox/channels';
import { openFeed } from '../../../service/outbox/feeds';
import { recordRange } from '../../../service/outbox/record-range';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { targetOf } from '../../../service/subscriptions/manage-subscriptions';
import { subscriptionOf } from '../../../service/subscriptions/stored-subscriptions';
import { eventIn, hashOf, SAMPLE_REGISTRY } from '../database/sample-feed';
import { signingKeysOfTest } from '../receiver/webhook-to';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';
import { TOKENS, TYPES, type Span } from './rule';

/** An event, and when it was recorded. */
export interface Recorded extends Span {
  event: RegistryEvent;
}

/** The parts of the registries, and what they record. */
export interface RegistriesOptions {
  database: Database;
  /** That of each process of the service. */
  databases: readonly Database[];
  history: History;
  /** Chooses the changes. */
  random: SeededRandom;
  /** Chooses the events. */
  ofEvents: SeededRandom;
  tick(this: void): number;
}

const MOST_REGISTRIES = 5;
/** Events of each registry in one block. */
const EVENTS_PER_BLOCK = 2;
const BLOCK_EVERY_MS = 150;

const REMARK = { remark: '0x' };
const [ONE, OTHER] = [`0x${'01'.repeat(20)}`, `0x${'02'.repeat(20)}`];

/** The payload of each type of event. */
const PAYLOADS: { [Type in (typeof TYPES)[number]]: ChainEventPayload<Type> } = {
  holder_transfer: { fromHolder: ONE, toHolder: OTHER, ...REMARK },
  nomination: { prevNominee: ONE, nominee: OTHER, ...REMARK },
  shred: REMARK,
};

interface Registry {
  identity: typeof SAMPLE_REGISTRY;
  blocks: number;
  /** One of each process. Empty while it is not followed. */
  deliveries: readonly FeedDelivery[];
  isRead: boolean;
  reading: Promise<void>;
}

/**
 * Registries that are added, given up, and followed again. Each has its own feed and deliveries. At first
 * there is none.
 */
export function createChangingRegistries(options: RegistriesOptions) {
  const { database, history, random, tick } = options;
  const logger = pino({ level: 'silent' });
  const processes = options.databases.map((own, number) => ({
    database: own,
    deliverers: createDeliverers(own, { id: `process ${number}`, time: systemTime, logger }),
  }));
  const all: Registry[] = [];
  const recorded: Recorded[] = [];

  async function follow(registry: Registry): Promise<void> {
    const { identity } = registry;
    const name = `${identity.chainId}:${identity.registryAddress}:0123456789abcdef`;
    const feed = await openFeed(database.db, name, 1, systemTime.now());
    const deliveries = processes.map((process) => deliveryOf(process));
    await Promise.all(deliveries.map((delivery) => delivery.start(name)));
    Object.assign(registry, { deliveries, isRead: true });
    registry.reading = read();

    async function read(): Promise<void> {
      while (registry.isRead) {
        const block = ++registry.blocks;
        const events = eventsOf(block, options.ofEvents);
        const range = { events, blocks: [{ number: block, hash: hashOf(block) }], oldestKept: 0 };
        const from = tick();
        const whole = { ...range, nextBlock: block + 1 };
        const { channels } = await recordRange(database, feed, identity, whole, systemTime.now());
        const to = tick();
        deliveries[0]?.wake(channels);
        recorded.push(...events.map((event) => ({ event, from, to })));
        await sleep(BLOCK_EVERY_MS);
      }
    }
  }

  async function giveUp(registry: Registry): Promise<void> {
    registry.isRead = false;
    await registry.reading;
    await Promise.all(registry.deliveries.map((delivery) => delivery.stop()));
    registry.deliveries = [];
  }

  async function add(): Promise<void> {
    const registryAddress = `0x${(all.length + 1).toString(16).padStart(40, '5b')}`;
    const identity = { ...SAMPLE_REGISTRY, registryAddress };
    const registry = { identity, blocks: 0, deliveries: [], isRead: false, reading: Promise.resolve() };
    all.push(registry);
    await follow(registry);
    history.count('registries added');
  }

  return {
    /** In the order of recording. */
    recorded,
    add,
    /** Adds one, gives one up, or follows one again. */
    async changeOne(): Promise<void> {
      if (all.length < MOST_REGISTRIES && random.chance(0.5)) return add();
      const registry = random.pick(all);
      if (registry.deliveries.length > 0) {
        await giveUp(registry);
        history.count('registries given up');
      } else {
        await follow(registry);
        history.count('registries followed again');
      }
    },
    async followAll(): Promise<void> {
      for (const registry of all) if (registry.deliveries.length === 0) await follow(registry);
    },
    /** Makes the deliveries read the changed subscriptions. */
    refresh(this: void): void {
      for (const { deliveries } of all) for (const delivery of deliveries) void delivery.refresh();
    },
    /** Records nothing more. */
    async endRecording(): Promise<void> {
      for (const registry of all) registry.isRead = false;
      await Promise.all(all.map(({ reading }) => reading));
    },
    async stop(): Promise<void> {
      await Promise.all(all.map(giveUp));
    },
  };
}

function eventsOf(block: number, random: SeededRandom): RegistryEvent[] {
  return Array.from({ length: EVENTS_PER_BLOCK }, (_, logIndex) => {
    const tokenId = BigInt(random.below(TOKENS));
    const type = random.pick(TYPES);
    return eventIn(block, tokenId, {
      type,
      payload: PAYLOADS[type],
      logIndex,
      blockLogIndex: logIndex,
      transactionHash: random.hex(32),
    });
  });
}

/** A process of the service. */
interface Process {
  database: Database;
  deliverers: Deliverers;
}

function deliveryOf({ database, deliverers }: Process): FeedDelivery {
  const signingKeys = signingKeysOfTest();
  return createFeedDelivery({
    database,
    time: systemTime,
    logger: pino({ level: 'silent' }),
    slots: createDeliverySlots({ most: 1_000, time: systemTime, logger: pino({ level: 'silent' }) }),
    deliverers,
    targetOf({ subscription, definition, secrets, state }: Channel) {
      if (definition === null) return undefined;
      const row = { name: subscription, definition, secrets, state };
      const rules = { allowPrivate: true, allowLoopback: true };
      return targetOf(subscriptionOf(row, undefined), signingKeys, { rules, lookup });
    },
    restorePurged: async () => undefined,
    lifecycle: createLifecycle(),
    registry: 'operations',
  });
}
