import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sql } from 'kysely';
import type { Database } from '../service/database/database';
import { openFeed } from '../service/outbox/feeds';
import { changeSubscription } from '../test/helpers/database/subscriber';
import { compare, percentile, timeOf, type Figures, type Size } from './measure';
import { deliver, installedEngines, recordBlock, subscribe, withDatabase } from './outbox';
import { withReceiver, type CountingReceiver } from './processes';

const FEED = 'bench:subscribers';
const BLOCKS = 200;
const CHANGES = 20;
/** The parties of each event. */
const PARTIES = [`0x${'01'.repeat(20)}`, `0x${'02'.repeat(20)}`];
/** Each channel looks at its queues once, soon after the start. */
const SETTLE_MS = 15_000;
const IDLE_MS = 10_000;

/** Filters that want the events of one party: with its value in the index, and hidden from it. */
const INDEXED = (party: string): object => ({ parties: [party] });
const NOT_INDEXED = (party: string): object => ({ not: { not: { parties: [party] } } });

/** The cost of subscriptions that want nothing of an event. Each event is for the first two of them. */
export async function subscribers(size: Size): Promise<void> {
  for (const engine of await installedEngines())
    await withReceiver(async (receiver) => {
      const counts = [10, 100, 1_000, 10_000].map(size.of).filter((count) => count >= PARTIES.length);
      const cases = counts.map((count): [string, Case] => [`${count}`, [count, INDEXED]]);
      cases.push([`${counts.at(-1)}, not indexed`, [counts.at(-1) ?? 0, NOT_INDEXED]]);
      await compare(
        `subscriptions that each want the events of another party, ${engine}`,
        { rounds: 1 },
        Object.fromEntries(
          cases.map(([name, [count, filterOf]]) => [
            name,
            () => withDatabase(engine, (database) => measure(database, count, filterOf, receiver)),
          ]),
        ),
      );
    });
}

type Case = [count: number, filterOf: (party: string) => object];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function measure(
  database: Database,
  count: number,
  filterOf: (party: string) => object,
  receiver: CountingReceiver,
): Promise<Figures> {
  const partyOf = (index: number): string => PARTIES[index] ?? `0x${index.toString(16).padStart(40, 'a')}`;
  const membersOf = (index: number) => ({ sink: receiver.url, filters: [filterOf(partyOf(index))] });
  await subscribe(database, count, membersOf);
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
    const [recording, arriving, changing] = [[] as number[], [] as number[], [] as number[]];
    for (let block = 1; block <= BLOCKS; block++) {
      let channels: readonly number[] = [];
      recording.push(await timeOf(async () => (channels = await recordBlock(database, feed, block, 1))));
      delivery.wake(channels);
      arriving.push(await timeOf(() => receiver.received(PARTIES.length * block)));
    }
    const [channel = 0] = await recordBlock(database, feed, BLOCKS + 1, 1);
    for (let change = 1; change <= CHANGES; change++) {
      await changeSubscription(database, channel, membersOf(0));
      const { user: cpu } = process.cpuUsage();
      await delivery.refresh();
      await recordBlock(database, feed, BLOCKS + 1 + change, 1);
      changing.push((process.cpuUsage().user - cpu) / 1_000);
    }
    return {
      'start, ms': startMs,
      'memory of each, KiB': heap / 1_024 / count,
      'processor when idle, ms a second': (user + system) / idleMs,
      'to record a block with an event, ms': percentile(recording, 0.5),
      'to deliver it to two, ms': percentile(arriving, 0.5),
      'processor for a change and the next event, ms': percentile(changing, 0.5),
    };
  } finally {
    await delivery.stop();
  }
}
