import type { Database } from '../service/database/database';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { compareDead } from './dead-subscriber';
import { fillOutbox } from './fill-outbox';
import { median } from './median';
import { compareRecording } from './recording';
import { ENGINES, type WithDatabase } from './state';
import { deliverToSubscribers, subscribe } from './subscribers';

const ROUNDS = 3;
const SUBSCRIPTIONS = [1, 10, 100];
/** Deliveries to all subscriptions together, as many in each measurement. */
const DELIVERIES = 20_000;
const EVENTS_PER_TOKEN = 5;
const FEED = 'bench:fan-out';

/** Measures how the cost of events depends on the number of their subscribers. */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    for (const withDatabase of ENGINES) {
      await compareNumbers(withDatabase, receiver);
      await compareRecording(withDatabase);
      await compareDead(withDatabase, receiver);
    }
  } finally {
    await receiver.stop();
  }
}

/**
 * Deliveries a second to several subscriptions for the same events. The numbers of subscriptions take turns.
 */
async function compareNumbers(withDatabase: WithDatabase, receiver: CountingReceiver): Promise<void> {
  const rates = new Map(SUBSCRIPTIONS.map((count) => [count, [] as number[]]));
  let engine = 'no engine';
  // The first round compiles code and does not count.
  for (let round = 0; round <= ROUNDS; round++)
    for (const [count, measured] of rates)
      await withDatabase(async (database) => {
        engine = database.engine;
        const rate = await rateTo(database, count, receiver);
        if (round > 0) measured.push(rate);
      });
  const [one = []] = rates.values();
  console.log(`${engine}, ${DELIVERIES} deliveries in all, medians of ${ROUNDS} rounds:`);
  for (const [count, measured] of rates) {
    const shares = measured.map((rate, round) => rate / (one[round] ?? NaN));
    const [least, most] = [Math.min(...shares).toFixed(2), Math.max(...shares).toFixed(2)];
    const share = `${median(shares).toFixed(2)} of one subscription (${least} to ${most})`;
    console.log(`  ${String(count).padStart(3)} subscriptions: ${Math.round(median(measured))}/s, ${share}`);
  }
}

async function rateTo(
  database: Database,
  subscriptions: number,
  receiver: CountingReceiver,
): Promise<number> {
  for (let index = 0; index < subscriptions; index++) await subscribe(database, receiver.url);
  const tokens = DELIVERIES / subscriptions / EVENTS_PER_TOKEN;
  await fillOutbox(database, FEED, { tokens, eventsPerToken: EVENTS_PER_TOKEN });
  await receiver.reset();
  const delivery = deliverToSubscribers(database);
  const start = performance.now();
  try {
    await delivery.start(FEED);
    await receiver.received(DELIVERIES);
    return (DELIVERIES / (performance.now() - start)) * 1_000;
  } finally {
    await delivery.stop();
  }
}
