import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sql } from 'kysely';
import type { Database } from '../service/database/database';
import type { FeedDelivery } from '../service/delivery/feed-delivery';
import { openFeed, type OpenFeed } from '../service/outbox/feeds';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { FROM_HOLDER, recordBlock, TO_HOLDER } from './fill-outbox';
import { median } from './median';
import { ENGINES } from './state';
import { deliverToSubscribers, subscribe } from './subscribers';

const SUBSCRIPTIONS = [100, 1_000, 10_000];
const FEED = 'bench:scale';
/** Each event is for two subscriptions. */
const BLOCKS = 30;
const EVENTS_OF_A_BLOCK = 5;
/** Each channel looks at its queues once, soon after the start. */
const SETTLE_MS = 15_000;
const IDLE_MS = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Measures the cost of many subscriptions, each of which selects the events of its own party: at the start,
 * in memory, while no events occur, for each event, and for a change of one subscription.
 */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    for (const withDatabase of ENGINES)
      for (const count of SUBSCRIPTIONS) await withDatabase((database) => measure(database, receiver, count));
  } finally {
    await receiver.stop();
  }
}

async function measure(database: Database, receiver: CountingReceiver, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await subscribe(database, receiver.url, { filters: [{ parties: [partyOf(index)] }] });
  const feed = await openFeed(database.db, FEED, 1, 1);
  if (database.engine === 'postgres') await sql`analyze`.execute(database.db);
  const heapBefore = heapUsed();
  const delivery = deliverToSubscribers(database);
  try {
    const startMs = await timeOf(() => delivery.start(FEED));
    await sleep(SETTLE_MS);
    const heapKb = (heapUsed() - heapBefore) / 1024 / count;
    const idleShare = await processorShare(() => sleep(IDLE_MS));
    const event = await timesOfEvents(database, feed, delivery, receiver);
    const refreshMs = await timeOf(() => delivery.refresh());
    console.log(
      `${database.engine}, ${count} subscriptions: start ${startMs.toFixed(0)} ms; ` +
        `${heapKb.toFixed(1)} KiB each; ` +
        `when idle ${(idleShare * 1_000).toFixed(0)} ms of processor a second; ` +
        `to record an event that two want ${event.recordMs.toFixed(2)} ms, and to deliver it ` +
        `${event.arriveMs.toFixed(0)} ms; a change ${refreshMs.toFixed(0)} ms`,
    );
  } finally {
    await delivery.stop();
  }
}

/** The party of a subscription. Those of the first two are the parties of the events. */
function partyOf(index: number): string {
  return [FROM_HOLDER, TO_HOLDER][index] ?? `0x${index.toString(16).padStart(40, 'a')}`;
}

/**
 * Medians of the time to record an event, and of the time from a recorded block to its arrival at the
 * subscribers.
 */
async function timesOfEvents(
  database: Database,
  feed: OpenFeed,
  delivery: FeedDelivery,
  receiver: CountingReceiver,
): Promise<{ recordMs: number; arriveMs: number }> {
  const [recording, arriving] = [[] as number[], [] as number[]];
  await receiver.reset();
  for (let block = 1; block <= BLOCKS; block++) {
    let channels: readonly number[] = [];
    const ms = await timeOf(async () => {
      ({ channels } = await recordBlock(database, feed, block, EVENTS_OF_A_BLOCK));
    });
    recording.push(ms / EVENTS_OF_A_BLOCK);
    arriving.push(
      await timeOf(async () => {
        delivery.wake(channels);
        await receiver.received(2 * EVENTS_OF_A_BLOCK * block);
      }),
    );
  }
  return { recordMs: median(recording), arriveMs: median(arriving) };
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The processor time of this process while the work lasts, as a share of its duration. */
async function processorShare(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  const ms = await timeOf(work);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / ms;
}

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
