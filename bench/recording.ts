import type { Database } from '../service/database/database';
import { openFeed } from '../service/outbox/feeds';
import { recordBlock } from './fill-outbox';
import { median } from './median';
import type { WithDatabase } from './state';
import { leaveOutDefault, subscribe } from './subscribers';

const ROUNDS = 5;
const BLOCKS = 40;
const EVENTS_OF_A_BLOCK = 25;
const UNWANTED = { filters: [{ exact: { type: 'com.service.etr.shred' } }] };

/** The subscriptions that exist when an event is recorded. */
const CASES = {
  'no subscription': { hasDefault: false, others: 0, members: {} },
  default: { hasDefault: true, others: 0, members: {} },
  'default, and 100 that want another type': { hasDefault: true, others: 100, members: UNWANTED },
  'no default, and 100 that want another type': { hasDefault: false, others: 100, members: UNWANTED },
  '100 that want it': { hasDefault: false, others: 100, members: {} },
};

/** Measures the time to record an event. The cases take turns. */
export async function compareRecording(withDatabase: WithDatabase): Promise<void> {
  const cases = Object.entries(CASES).map(([name, one]) => ({ name, ...one, times: [] as number[] }));
  let engine = 'no engine';
  // The first round compiles code and does not count.
  for (let round = 0; round <= ROUNDS; round++)
    for (const one of cases)
      await withDatabase(async (database) => {
        engine = database.engine;
        const time = await timeOfEvent(database, one);
        if (round > 0) one.times.push(time);
      });
  console.log(
    `${engine}, to record an event in blocks of ${EVENTS_OF_A_BLOCK}, medians of ${ROUNDS} rounds:`,
  );
  for (const { name, times } of cases) {
    const [least, most] = [Math.min(...times).toFixed(3), Math.max(...times).toFixed(3)];
    console.log(`  ${name}: ${median(times).toFixed(3)} ms (${least} to ${most})`);
  }
}

/** Milliseconds for each event. */
async function timeOfEvent(
  database: Database,
  { hasDefault, others, members }: { hasDefault: boolean; others: number; members: object },
): Promise<number> {
  for (let index = 0; index < others; index++) await subscribe(database, 'http://127.0.0.1:1/', members);
  const feed = await openFeed(database.db, 'bench:recording', 1, 1);
  if (!hasDefault) await leaveOutDefault(database);
  const start = performance.now();
  for (let block = 1; block <= BLOCKS; block++) await recordBlock(database, feed, block, EVENTS_OF_A_BLOCK);
  return (performance.now() - start) / BLOCKS / EVENTS_OF_A_BLOCK;
}
