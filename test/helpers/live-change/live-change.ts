import { setTimeout as sleep } from 'node:timers/promises';
import { lookup } from 'node:dns';
import pino from 'pino';
import { systemClock } from '../../../service/base/clock';
import type { Database } from '../../../service/database/database';
import { createFeedDelivery } from '../../../service/delivery/feed-delivery';
import type { Channel } from '../../../service/outbox/channels';
import type { CloudEvent } from '../../../service/outbox/cloud-event';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { targetOf } from '../../../service/subscriptions/channel-target';
import { createSecretsCipher } from '../../../service/subscriptions/secrets';
import { subscriptionOf } from '../../../service/subscriptions/stored-subscriptions';
import { eventIn, openSampleFeed, record, SAMPLE_FEED } from '../database/sample-feed';
import { eventually } from '../eventually';
import { signingKeysOfTest } from '../receiver/webhook-to';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { createChangingSubscriptions, type Changing } from './changing-subscriptions';
import { startSharedReceiver } from './receiver';
import { expectationOf, TYPES, type Span } from './rule';

/** The size of a run. */
export interface LiveChange {
  seed: number;
  subscriptions: number;
  tokens: number;
  /** Changes of subscriptions. Events are recorded until the last of them. */
  changes: number;
  eventsPerBlock: number;
  /** The pause between two blocks. */
  blockEveryMs: number;
}

/** Deliveries that should not be as they are, and what was done. */
export interface LiveChangeResult {
  missed: number;
  outOfOrder: number;
  againstTheRule: number;
  repeated: number;
  counts: Record<string, number>;
}

/** An event, and when it was recorded. */
interface Recorded extends Span {
  event: RegistryEvent;
}

/** Records events while subscriptions are changed at random, and compares what arrived with the rules. */
export async function runLiveChange(database: Database, change: LiveChange): Promise<LiveChangeResult> {
  const random = seededRandom(change.seed);
  const receiver = await startSharedReceiver(seededRandom(change.seed + 1));
  const delivery = deliveryOf(database);
  let ticks = 0;
  const tick = (): number => ++ticks;
  const changing = createChangingSubscriptions({
    database,
    sinks: receiver.url,
    tokens: change.tokens,
    random,
    tick,
    onChanged: () => void delivery.refresh(),
  });
  const recorded: Recorded[] = [];
  let isChanging = true;

  async function recordAll(): Promise<void> {
    const feed = await openSampleFeed(database);
    await delivery.start(SAMPLE_FEED);
    for (let block = 1; isChanging; block++) {
      const events = eventsOf(block, change, random);
      const from = tick();
      await record(database, feed, block, events, systemClock.now());
      const to = tick();
      delivery.wake();
      recorded.push(...events.map((event) => ({ event, from, to })));
      await sleep(change.blockEveryMs);
    }
  }

  async function changeAll(): Promise<void> {
    for (let added = 0; added < change.subscriptions; added++) await changing.add();
    for (let changed = 0; changed < change.changes; changed++) {
      await changing.changeOne();
      await sleep(random.below(20));
    }
    await changing.resumeAll();
    isChanging = false;
  }

  try {
    await Promise.all([recordAll(), changeAll()]);
    await eventually('nothing waits', () => nothingWaits(database, changing.all), { withinMs: 900_000 });
  } finally {
    await delivery.stop();
    await receiver.close();
  }
  const counts = { ...changing.counts, recorded: recorded.length, delivered: 0 };
  const result = { missed: 0, outOfOrder: 0, againstTheRule: 0, repeated: 0, counts };
  for (const one of changing.all) compare(one, receiver.accepted.get(one.path) ?? [], recorded, result);
  return result;
}

function eventsOf(
  block: number,
  { tokens, eventsPerBlock }: LiveChange,
  random: SeededRandom,
): RegistryEvent[] {
  return Array.from({ length: eventsPerBlock }, (_, logIndex) =>
    eventIn(block, BigInt(random.below(tokens)), {
      type: random.pick(TYPES),
      logIndex,
      blockLogIndex: logIndex,
      transactionHash: random.hex(32),
    }),
  );
}

function deliveryOf(database: Database): ReturnType<typeof createFeedDelivery> {
  const cipher = createSecretsCipher(undefined, () => Buffer.alloc(0));
  const signingKeys = signingKeysOfTest();
  return createFeedDelivery({
    database,
    clock: systemClock,
    logger: pino({ level: 'silent' }),
    targetOf({ subscription, changedAt, isDefault, ...channel }: Channel) {
      if (isDefault) return undefined;
      const row = { id: 0, name: subscription, created_at: 0, changed_at: changedAt, ...channel };
      const rules = { allowPrivate: true, allowLoopback: true };
      return targetOf(subscriptionOf(row, cipher), { signingKeys, rules, lookup });
    },
    restorePurged: async () => undefined,
    onAttempt: () => undefined,
  });
}

async function nothingWaits({ db }: Database, all: readonly Changing[]): Promise<boolean> {
  const ids = all.filter(({ isDeleted }) => !isDeleted).map(({ id }) => id);
  const waiting = await db
    .selectFrom('channels')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .leftJoin('queues', (join) =>
      join.onRef('queues.channel', '=', 'channels.id').on('queues.next_attempt_at', 'is not', null),
    )
    .select('channels.id')
    .where('subscriptions.name', 'in', ids)
    .where((eb) => eb.or([eb('queues.token', 'is not', null), eb('fill_block', 'is not', null)]))
    .executeTakeFirst();
  return waiting === undefined;
}

/** Adds the violations of one subscription to the result. */
function compare(
  one: Changing,
  accepted: readonly CloudEvent[],
  recorded: readonly Recorded[],
  result: LiveChangeResult & { counts: { delivered: number } },
): void {
  const order = new Map(recorded.map(({ event }, index) => [event.transactionHash, index]));
  const arrived = new Set<string>();
  const lastOfToken = new Map<string, number>();
  for (const { data, subject } of accepted) {
    const place = order.get(data.transactionHash) ?? NaN;
    if (arrived.has(data.transactionHash)) result.repeated++;
    else if (!(place > (lastOfToken.get(subject) ?? -1))) result.outOfOrder++;
    arrived.add(data.transactionHash);
    lastOfToken.set(subject, place);
  }
  result.counts.delivered += accepted.length;
  for (const { event, ...span } of recorded) {
    const expectation = expectationOf(one.changes, event, span);
    const hasArrived = arrived.has(event.transactionHash);
    // The deletion of a subscription removed its waiting events.
    if (expectation === 'must' && !hasArrived && !one.isDeleted) result.missed++;
    if (expectation === 'must not' && hasArrived) result.againstTheRule++;
  }
}
