import { text } from 'node:stream/consumers';
// eslint-disable-next-line no-restricted-syntax -- real time: changes come after random pauses.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../service/database/database';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { idOfBytes } from '../../../service/outbox/stored-events';
import { newState, openState, type Engine, type State } from '../database/engines';
import { eventually } from '../eventually';
import { serve, type TestServer } from '../http-server';
import { checkEvent } from '../receiver/schema-problems';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { everythingIsAsDescribed } from '../violations';
import { createChangingRegistries, type Recorded } from './changing-registries';
import { createChangingSubscriptions, MOST_AT_ONCE, type Changing } from './changing-subscriptions';
import { expectationOf } from './rule';

// A model test of subscriptions. Registries record events while subscriptions and registries are changed as
// the seed chooses. Then the events that arrived are compared with the rules. Time is real: a seed repeats
// the changes, not the timing.

const SUBSCRIPTIONS = 8;
/** The service has so many on PostgreSQL. */
const PROCESSES = 3;
/** Changes of subscriptions and registries. Events are recorded until the last of them. */
const CHANGES = 40;
/** The share of changes that concern registries. */
const OF_REGISTRIES = 0.2;
/** The share of deliveries that are answered with 500. */
const REFUSED = 0.02;
const LONGEST_ANSWER_MS = 5;

/** Undefined if the engine is not installed. */
export async function createLivePlace(engine: Engine): Promise<Place | undefined> {
  await using state = await newState(engine);
  if (state === undefined) return undefined;
  return {
    async run(seed) {
      await using ownState = (await newState(engine)) as State;
      const database = await openState(ownState);
      const databases = [database];
      if (engine === 'PostgreSQL')
        while (databases.length < PROCESSES) databases.push(await openState(ownState));
      const history = new History(seed);
      try {
        return await history.of(runOnce(history, database, databases));
      } finally {
        await Promise.all(databases.map((one) => one.close()));
      }
    },
  };
}

async function runOnce(history: History, database: Database, databases: readonly Database[]): Promise<void> {
  const { seed } = history;
  const random = seededRandom(seed);
  const accepted = new Map<string, CloudEvent[]>();
  await using receiver = await startReceiver(accepted, seededRandom(seed + 1), history);
  let ticks = 0;
  const parts = { database, databases, history, random, tick: () => ++ticks };
  // The events draw their own numbers, so that a seed makes the same changes whatever the timing.
  const registries = createChangingRegistries({ ...parts, ofEvents: seededRandom(seed + 2) });
  const { refresh: onChanged } = registries;
  const changing = createChangingSubscriptions({ ...parts, sinks: receiver.url, onChanged });
  try {
    await registries.add();
    for (let added = 0; added < SUBSCRIPTIONS; added++) await changing.add();
    for (let changed = 0; changed < CHANGES; changed++) {
      await (random.chance(OF_REGISTRIES) ? registries : changing).changeOne();
      await sleep(random.below(20));
    }
    await changing.resumeAll();
    await registries.followAll();
    await registries.endRecording();
    await eventually('nothing waits', () => nothingWaits(database, changing.all), { withinMs: 900_000 });
  } finally {
    await registries.stop();
  }
  history.count('recorded', registries.recorded.length);
  for (const one of changing.all) {
    const arrived = accepted.get(one.path) ?? [];
    history.count('delivered', arrived.length);
    compare(one, arrived, await unansweredOf(database, one.id), registries.recorded, history);
  }
  if (history.counts.delivered === 0) history.violation('nothing was delivered');
  everythingIsAsDescribed();
}

/** A receiver of all subscriptions, each of which has a path of its own. It refuses some deliveries. */
function startReceiver(
  accepted: Map<string, CloudEvent[]>,
  random: SeededRandom,
  history: History,
): Promise<TestServer> {
  const underWay = new Map<string, number>();
  return serve((request, response) => {
    const path = request.url ?? '';
    void text(request).then(async (body) => {
      const event = JSON.parse(body) as CloudEvent;
      checkEvent(event);
      // The limit is that of each registry.
      const channel = `${path} ${event.source}`;
      const count = (underWay.get(channel) ?? 0) + 1;
      underWay.set(channel, count);
      if (count > MOST_AT_ONCE) history.violation(`${channel} has ${count} deliveries at once`);
      await sleep(random.below(LONGEST_ANSWER_MS));
      underWay.set(channel, (underWay.get(channel) ?? 0) - 1);
      if (random.chance(REFUSED)) return void response.writeHead(500).end();
      accepted.set(path, [...(accepted.get(path) ?? []), event]);
      response.writeHead(204).end();
    });
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

/** Notes the violations of one subscription. */
function compare(
  one: Changing,
  accepted: readonly CloudEvent[],
  unanswered: ReadonlyMap<string, number>,
  recorded: readonly Recorded[],
  history: History,
): void {
  const order = new Map(recorded.map(({ event }, index) => [event.transactionHash, index]));
  const arrived = new Map<string, number>();
  const lastOfToken = new Map<string, number>();
  const wrong = (what: string, hash: string) => history.violation(`${one.path} ${what} the event of ${hash}`);
  for (const { id, data, source, subject } of accepted) {
    const token = `${source} ${subject}`;
    const times = (arrived.get(data.transactionHash) ?? 0) + 1;
    arrived.set(data.transactionHash, times);
    if (times > 1) {
      if (times > 1 + (unanswered.get(id) ?? 0) && !one.isDeleted) wrong('got again', data.transactionHash);
      continue;
    }
    const place = order.get(data.transactionHash) ?? NaN;
    if (!(place > (lastOfToken.get(token) ?? -1))) wrong('got out of order', data.transactionHash);
    lastOfToken.set(token, place);
  }
  for (const { event, ...span } of recorded) {
    const expectation = expectationOf(one.changes, event, span);
    const hasArrived = arrived.has(event.transactionHash);
    // The deletion of a subscription removed its waiting events.
    if (expectation === 'must' && !hasArrived && !one.isDeleted) wrong('missed', event.transactionHash);
    if (expectation === 'must not' && hasArrived) wrong('got against its rule', event.transactionHash);
  }
}
