import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../devnet/place';
import type { Database } from '../service/database/database';
import { openFeed } from '../service/outbox/feeds';
import { compare, percentile, timeOf, type Figures, type Size } from './measure';
import { deliver, fillOutbox, installedEngines, recordBlock, subscribe, withDatabase } from './outbox';
import { withReceiver, type CountingReceiver } from './processes';

const FEED = 'bench:fan-out';
/** Deliveries to all subscriptions together, as many in each case. */
const DELIVERIES = 20_000;

/** The cost of subscriptions that want the same events, and of dead ones. */
export async function fanOut(size: Size): Promise<void> {
  const deliveries = size.of(DELIVERIES);
  for (const engine of await installedEngines())
    await withReceiver(async (receiver) => {
      const on = (measure: (database: Database) => Promise<Figures>) => () => withDatabase(engine, measure);
      await compare(`${deliveries} deliveries in all, ${engine}`, size, {
        'one subscription': on((database) => toSame(database, 1, deliveries, receiver)),
        '10 for the same events': on((database) => toSame(database, 10, deliveries, receiver)),
        '100 for the same events': on((database) => toSame(database, 100, deliveries, receiver)),
      });
      const closed = `http://127.0.0.1:${await freePort(0)}/`;
      const events = size.of(EVENTS);
      await compare(`from an event to ${ALIVE} subscribers, ${engine}`, size, {
        'none is dead': on((database) => beside(database, undefined, events, receiver)),
        'one has a closed port': on((database) => beside(database, closed, events, receiver)),
        'one never answers': on((database) => beside(database, `${receiver.url}/never`, events, receiver)),
      });
    });
}

async function toSame(
  database: Database,
  subscriptions: number,
  deliveries: number,
  receiver: CountingReceiver,
): Promise<Figures> {
  await subscribe(database, subscriptions, () => ({ sink: receiver.url }));
  await fillOutbox(database, FEED, deliveries / subscriptions);
  await receiver.reset();
  const delivery = deliver(database);
  const ms = await timeOf(async () => {
    await delivery.start(FEED);
    await receiver.received(deliveries);
  });
  await delivery.stop();
  return { 'deliveries a second': (deliveries / ms) * 1_000 };
}

/** Subscribers that answer. */
const ALIVE = 99;
/** A block has one event. Its deliveries keep a processor busy for less than half of the time. */
const BLOCK_EVERY_MS = 250;
const EVENTS = 40;
/** Short, so that the dead subscriber is tried many times. */
const TIMEOUT_MS = 1_000;

async function beside(
  database: Database,
  dead: string | undefined,
  events: number,
  receiver: CountingReceiver,
): Promise<Figures> {
  const config = { timeoutMs: TIMEOUT_MS };
  await subscribe(database, ALIVE, () => ({ sink: `${receiver.url}/timed`, config }));
  if (dead !== undefined) await subscribe(database, 1, () => ({ sink: dead, config }));
  const feed = await openFeed(database.db, FEED, 1, 1);
  await receiver.reset();
  const delivery = deliver(database);
  const recordedAt: number[] = [];
  try {
    await delivery.start(FEED);
    for (let block = 1; block <= events; block++) {
      const start = performance.now();
      const channels = await recordBlock(database, feed, block, 1);
      recordedAt[block] = performance.timeOrigin + performance.now();
      delivery.wake(channels);
      await sleep(Math.max(0, start + BLOCK_EVERY_MS - performance.now()));
    }
    await receiver.received(ALIVE * events);
  } finally {
    await delivery.stop();
  }
  const arrivals = (await receiver.arrivals()).map(([block, at]) => at - (recordedAt[block] ?? NaN));
  return { 'median, ms': percentile(arrivals, 0.5), 'p99, ms': percentile(arrivals, 0.99) };
}
