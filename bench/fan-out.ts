import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sql } from 'kysely';
import { freePort } from '../devnet/place';
import type { Database } from '../service/database/database';
import { openFeed } from '../service/outbox/feeds';
import { compare, percentile, timeOf, type Figures, type Size } from './measure';
import { deliver, fillOutbox, installedEngines, recordBlock, subscribe, withDatabase } from './outbox';
import { withReceiver, type CountingReceiver } from './processes';

const FEED = 'bench:fan-out';
/** Deliveries to all subscriptions together, as many in each case. */
const DELIVERIES = 20_000;

/** The cost of subscriptions that want the same events, of dead ones, and of many. */
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
      await compare(
        `subscriptions that each want the events of another party, ${engine}`,
        { rounds: 1 },
        {
          '100': on((database) => idle(database, 100, receiver)),
          '1,000': on((database) => idle(database, 1_000, receiver)),
          ...(size.of(10) === 10 && { '10,000': on((database) => idle(database, 10_000, receiver)) }),
        },
      );
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

const BLOCKS = 30;
const EVENTS_OF_A_BLOCK = 5;
/** The parties of each event. */
const PARTIES = [`0x${'01'.repeat(20)}`, `0x${'02'.repeat(20)}`];
/** Each channel looks at its queues once, soon after the start. */
const SETTLE_MS = 15_000;
const IDLE_MS = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Each event is for the first two of the subscriptions. */
async function idle(database: Database, count: number, receiver: CountingReceiver): Promise<Figures> {
  const partyOf = (index: number): string => PARTIES[index] ?? `0x${index.toString(16).padStart(40, 'a')}`;
  await subscribe(database, count, (index) => ({
    sink: receiver.url,
    filters: [{ parties: [partyOf(index)] }],
  }));
  const feed = await openFeed(database.db, FEED, 1, 1);
  if (database.engine === 'postgres') await sql`analyze`.execute(database.db);
  const heapUsed = (): number => (collectGarbage(), process.memoryUsage().heapUsed);
  const heapBefore = heapUsed();
  const delivery = deliver(database);
  try {
    const startMs = await timeOf(() => delivery.start(FEED));
    await sleep(SETTLE_MS);
    const heap = heapUsed() - heapBefore;
    const before = process.cpuUsage();
    const idleMs = await timeOf(() => sleep(IDLE_MS));
    const { user, system } = process.cpuUsage(before);
    await receiver.reset();
    const [recording, arriving] = [[] as number[], [] as number[]];
    for (let block = 1; block <= BLOCKS; block++) {
      let channels: readonly number[] = [];
      const record = async (): Promise<void> => {
        channels = await recordBlock(database, feed, block, EVENTS_OF_A_BLOCK);
      };
      recording.push((await timeOf(record)) / EVENTS_OF_A_BLOCK);
      delivery.wake(channels);
      arriving.push(await timeOf(() => receiver.received(PARTIES.length * EVENTS_OF_A_BLOCK * block)));
    }
    return {
      'start, ms': startMs,
      'memory of each, KiB': heap / 1_024 / count,
      'processor when idle, ms a second': (user + system) / idleMs,
      'to record an event, ms': percentile(recording, 0.5),
      'to deliver five, ms': percentile(arriving, 0.5),
      'a change of one, ms': await timeOf(() => delivery.refresh()),
    };
  } finally {
    await delivery.stop();
  }
}
