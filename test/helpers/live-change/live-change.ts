import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../service/database/database';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { idOfBytes } from '../../../service/outbox/stored-events';
import { eventually } from '../eventually';
import { seededRandom } from '../seeded-random';
import { createChangingRegistries, type Recorded } from './changing-registries';
import { createChangingSubscriptions, type Changing } from './changing-subscriptions';
import { startSharedReceiver } from './receiver';
import { expectationOf } from './rule';

/** The size of a run. */
export interface LiveChange {
  seed: number;
  subscriptions: number;
  tokens: number;
  /** Changes of subscriptions and registries. Events are recorded until the last of them. */
  changes: number;
  /** Events of each registry in one block. */
  eventsPerBlock: number;
  /** The pause between two blocks. */
  blockEveryMs: number;
}

/** The share of changes that concern registries. */
const OF_REGISTRIES = 0.2;

/**
 * Records events while subscriptions and registries are changed at random, and compares what arrived with the
 * rules.
 *
 * @returns the numbers of violations, and of the steps of the run. `repeated`: deliveries after one that was
 *   answered.
 */
export async function runLiveChange(database: Database, change: LiveChange) {
  const random = seededRandom(change.seed);
  const receiver = await startSharedReceiver(seededRandom(change.seed + 1));
  let ticks = 0;
  const tick = (): number => ++ticks;
  // The events draw their own numbers, so that a seed makes the same changes whatever the timing.
  const ofEvents = seededRandom(change.seed + 2);
  const registries = createChangingRegistries({ ...change, database, random, ofEvents, tick });
  const changing = createChangingSubscriptions({
    database,
    sinks: receiver.url,
    tokens: change.tokens,
    random,
    tick,
    onChanged: registries.refresh,
  });
  try {
    await registries.add();
    for (let added = 0; added < change.subscriptions; added++) await changing.add();
    for (let changed = 0; changed < change.changes; changed++) {
      await (random.chance(OF_REGISTRIES) ? registries : changing).changeOne();
      await sleep(random.below(20));
    }
    await changing.resumeAll();
    await registries.followAll();
    await registries.endRecording();
    await eventually('nothing waits', () => nothingWaits(database, changing.all), { withinMs: 900_000 });
  } finally {
    await registries.stop();
    await receiver.close();
  }
  const { recorded } = registries;
  const counts: Record<string, number> & { delivered: number } = {
    ...changing.counts,
    ...registries.counts,
    recorded: recorded.length,
    delivered: 0,
  };
  const result = { missed: 0, outOfOrder: 0, againstTheRule: 0, repeated: 0, counts };
  for (const one of changing.all) {
    const accepted = receiver.accepted.get(one.path) ?? [];
    compare(one, accepted, await unansweredOf(database, one.id), recorded, result);
  }
  return result;
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

/** How often no answer came in time, by event. A busy machine is slow to answer. */
async function unansweredOf({ db }: Database, id: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('attempts')
    .innerJoin('channels', 'channels.id', 'attempts.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .innerJoin('events', 'events.id', 'attempts.event')
    .select((eb) => ['events.event_id', eb.fn.countAll().as('count')])
    .where('subscriptions.name', '=', id)
    .where('attempts.error', 'is not', null)
    .where('attempts.status', 'is', null)
    .groupBy('events.event_id')
    .execute();
  return new Map(rows.map(({ event_id, count }) => [idOfBytes(event_id), Number(count)]));
}

/** Adds the violations of one subscription to the result. */
function compare(
  one: Changing,
  accepted: readonly CloudEvent[],
  unanswered: ReadonlyMap<string, number>,
  recorded: readonly Recorded[],
  result: Awaited<ReturnType<typeof runLiveChange>>,
): void {
  const order = new Map(recorded.map(({ event }, index) => [event.transactionHash, index]));
  const arrived = new Map<string, number>();
  const lastOfToken = new Map<string, number>();
  for (const { id, data, source, subject } of accepted) {
    const token = `${source} ${subject}`;
    const times = (arrived.get(data.transactionHash) ?? 0) + 1;
    arrived.set(data.transactionHash, times);
    if (times > 1) {
      if (times > 1 + (unanswered.get(id) ?? 0) && !one.isDeleted) result.repeated++;
      continue;
    }
    const place = order.get(data.transactionHash) ?? NaN;
    if (!(place > (lastOfToken.get(token) ?? -1))) result.outOfOrder++;
    lastOfToken.set(token, place);
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
