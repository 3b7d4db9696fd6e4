import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../service/database/database';
import { openFeed } from '../service/outbox/feeds';
import { freePort } from '../devnet/place';
import type { CountingReceiver } from './counting-receiver';
import { recordBlock } from './fill-outbox';
import { median } from './median';
import { percentile } from './spread';
import type { WithDatabase } from './state';
import { deliverToSubscribers, subscribe } from './subscribers';

const ROUNDS = 5;
/** Subscribers that answer. */
const ALIVE = 99;
/** A block has one event. Its deliveries keep a processor busy for less than half of the time. */
const BLOCK_EVERY_MS = 250;
const BLOCKS = 40;
const WARM_UP = 8;
/** Short, so that the dead subscriber is tried many times. */
const TIMEOUT_MS = 1_000;
const FEED = 'bench:dead-subscriber';

/**
 * Measures the time from a recorded event to its arrival at 99 subscribers, alone and with a hundredth one
 * that is dead. The cases take turns.
 */
export async function compareDead(withDatabase: WithDatabase, receiver: CountingReceiver): Promise<void> {
  const closed = `http://127.0.0.1:${await freePort(0)}/`;
  const dead = { none: undefined, 'a closed port': closed, 'no answer': `${receiver.url}/never` };
  const cases = Object.entries(dead).map(([name, sink]) => ({ name, sink, rounds: [] as number[][] }));
  let engine = 'no engine';
  for (let round = 0; round < ROUNDS; round++)
    for (const { sink, rounds } of cases)
      await withDatabase(async (database) => {
        engine = database.engine;
        rounds.push(await delaysOf(database, receiver, sink));
      });
  console.log(
    `${engine}, from an event to ${ALIVE} subscribers, medians of ${ROUNDS} rounds of ${BLOCKS} events:`,
  );
  for (const { name, rounds } of cases) {
    const p50 = median(rounds.flat()).toFixed(0);
    const p99s = rounds.map((delays) => percentile(delays, 0.99));
    const [least, most] = [Math.min(...p99s).toFixed(0), Math.max(...p99s).toFixed(0)];
    const p99 = `${median(p99s).toFixed(0)} ms (${least} to ${most})`;
    console.log(`  dead subscriber: ${name.padEnd(13)} p50 ${p50} ms, p99 ${p99}`);
  }
}

async function delaysOf(
  database: Database,
  receiver: CountingReceiver,
  deadSink: string | undefined,
): Promise<number[]> {
  const rules = { config: { timeoutMs: TIMEOUT_MS } };
  for (let index = 0; index < ALIVE; index++) await subscribe(database, `${receiver.url}/timed`, rules);
  if (deadSink !== undefined) await subscribe(database, deadSink, rules);
  const feed = await openFeed(database.db, FEED, 1, 1);
  await receiver.reset();
  const delivery = deliverToSubscribers(database);
  const recordedAt = new Map<number, number>();
  try {
    await delivery.start(FEED);
    for (let block = 1; block <= BLOCKS; block++) {
      const start = performance.now();
      const { channels } = await recordBlock(database, feed, block);
      recordedAt.set(block, performance.timeOrigin + performance.now());
      delivery.wake(channels);
      await sleep(Math.max(0, start + BLOCK_EVERY_MS - performance.now()));
    }
    await receiver.received(ALIVE * BLOCKS);
  } finally {
    await delivery.stop();
  }
  const measured = (await receiver.arrivals()).filter(([block]) => block > WARM_UP);
  return measured.map(([block, arrivedAt]) => arrivedAt - (recordedAt.get(block) ?? NaN));
}
