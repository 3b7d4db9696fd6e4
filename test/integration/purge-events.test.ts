import { expect } from 'chai';
import type { Transaction } from 'kysely';
import { systemTime } from '../../service/base/time';
import type { Schema } from '../../service/database/schema';
import type { KeptBlock } from '../../service/outbox/feeds';
import { recordRange } from '../../service/outbox/record-range';
import { countPurgeable, purgedUpTo, purgeEvents, restoreEvents } from '../../service/outbox/purge-events';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { describeOnEngines } from '../helpers/database/engines';
import { blocksOf, dead, delivered, emptyOutbox } from '../helpers/database/empty-outbox';
import { eventIn, hashOf, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const DAY_MS = 86_400_000;
const DEPTH = 10;
/** More than three batches. */
const MANY = 700;

describeOnEngines('removing old events', (on) => {
  const outbox = emptyOutbox(on);
  const { claim, settle } = outbox;

  /** Reads as the watcher does: blocks older than DEPTH are not kept. */
  async function read(toBlock: number, events: RegistryEvent[] = [], branch = 'a'): Promise<void> {
    const numbers = [...new Set([...events.map(({ blockNumber }) => blockNumber), toBlock])];
    const blocks = numbers.map((number): KeptBlock => ({ number, hash: hashOf(number, branch) }));
    const range = { events, blocks, oldestKept: Math.max(toBlock - DEPTH, 0), nextBlock: toBlock + 1 };
    await recordRange(outbox.database, outbox.feed, SAMPLE_REGISTRY, range, outbox.now);
  }
  const deliverAll = async (): Promise<number[]> => blocksOf(await outbox.deliverAll());
  const purge = (olderThanDays = 30): Promise<number> =>
    purgeEvents(systemTime, outbox.database, SAMPLE_FEED, outbox.now - olderThanDays * DAY_MS);
  const countOf = async (table: keyof Schema): Promise<number> => {
    const { count } = await outbox.database.db
      .selectFrom(table)
      .select((eb) => eb.fn.countAll().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  };
  const rows = async (): Promise<number[]> =>
    Promise.all((['events', 'deliveries', 'attempts'] as const).map(countOf));
  const kept = async (): Promise<number[]> => {
    const events = await outbox.database.db
      .selectFrom('events')
      .select('block_number')
      .orderBy('block_number')
      .execute();
    return events.map(({ block_number }) => block_number);
  };

  it('keeps orphans, also those that were never sent, and their retractions', async () => {
    await read(2, [eventIn(1, 7n), eventIn(2, 7n), eventIn(2, 8n)]);
    const sent = await claim(1);
    for (const head of sent) await settle(delivered(head, outbox.now));
    await rewindFeed(outbox.database, outbox.feed, { number: 0, hash: hashOf(0) }, outbox.now);
    await read(3 + DEPTH, [], 'b');
    expect(await purge()).to.equal(0);
    outbox.now += 31 * DAY_MS;
    expect(await purge()).to.equal(0);
    // Those who fetch know their ids to be retracted: mined again, they need others.
    expect(await kept()).to.deep.equal([1, 1, 2, 2, 2, 2]);
  });

  it('keeps an orphan that is mined again while the purge runs', async () => {
    const { transactionHash } = eventIn(2, 7n);
    await read(2, [eventIn(2, 7n)]);
    await deliverAll();
    await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    await read(3 + DEPTH, [], 'b');
    const { db } = outbox.database;
    /** It has read the old events, and is about to remove them. */
    const beforeRemoval = () => ({
      async execute(work: (transaction: Transaction<Schema>) => Promise<unknown>) {
        const again = eventIn(4 + DEPTH, 7n, { transactionHash }, 'b');
        await read(4 + DEPTH, [again, eventIn(4 + DEPTH, 8n, {}, 'b')], 'b');
        await deliverAll();
        return db.transaction().execute(work);
      },
    });
    const purging = new Proxy(db, {
      get: (target, name) =>
        name === 'transaction'
          ? beforeRemoval
          : (Reflect.get(target, name, target) as (...args: unknown[]) => unknown).bind(target),
    });
    outbox.now += 31 * DAY_MS;
    expect(await purgeEvents(systemTime, { db: purging }, SAMPLE_FEED, outbox.now - DAY_MS)).to.equal(0);
    expect(await kept()).to.include(4 + DEPTH);
  });

  it('restores removed events with their age, and no range whose end was removed since', async () => {
    const events = [eventIn(1, 7n), eventIn(2, 7n)];
    outbox.now = (events[0]?.blockTimestamp ?? 0) * 1_000 + DAY_MS;
    await read(2, events);
    await deliverAll();
    await read(3 + DEPTH);
    outbox.now += 31 * DAY_MS;
    expect(await purge()).to.equal(2);
    const { database, feed, now } = outbox;
    const restore = (toBlock: number) =>
      restoreEvents(database, feed.id, SAMPLE_REGISTRY, { events, fromBlock: 0, toBlock }, now);
    expect(await restore(1)).to.equal(false);
    expect(await kept()).to.deep.equal([]);
    expect(await restore(2)).to.equal(true);
    expect(await kept()).to.deep.equal([1, 2]);
    expect(await purge()).to.equal(2);
  });

  it('removes events delivered long ago, with their attempts, and leaves queues intact', async () => {
    await read(2, [eventIn(1, 7n), eventIn(2, 7n)]);
    await deliverAll();
    outbox.now += 20 * DAY_MS;
    await read(3, [eventIn(3, 7n), eventIn(3, 8n)]);
    await deliverAll();
    await read(3 + DEPTH);
    outbox.now += 10 * DAY_MS;
    expect(await purge()).to.equal(0);
    outbox.now += 1;
    expect(
      await countPurgeable(systemTime, outbox.database.db, SAMPLE_FEED, outbox.now - 30 * DAY_MS),
    ).to.equal(2);
    expect(await purge()).to.equal(2);
    expect(await rows()).to.deep.equal([2, 2, 2]);
    expect(await purgedUpTo(outbox.database.db, SAMPLE_FEED)).to.equal(2);
    await read(14, [eventIn(14, 7n)]);
    expect(await deliverAll()).to.deep.equal([14]);
    outbox.now += 30 * DAY_MS;
    expect(await purge()).to.equal(2);
    expect(await kept()).to.deep.equal([14]);
    expect(await purgedUpTo(outbox.database.db, SAMPLE_FEED)).to.equal(3);
  });

  it('keeps events that wait, are under way or are dead letters', async () => {
    await read(1, [eventIn(1, 1n), eventIn(1, 2n), eventIn(1, 3n), eventIn(1, 4n)]);
    await read(2, [eventIn(2, 3n)]);
    const heads = new Map((await claim(3)).map((head) => [head.tokenId, head]));
    const [one, two] = [...heads.values()];
    if (one && two) await settle(delivered(one, outbox.now), dead(two, outbox.now));
    outbox.now += 1_000 * DAY_MS;
    await read(2 + DEPTH);
    expect(await purge()).to.equal(1);
    expect(await countOf('events')).to.equal(4);
    expect(await countOf('dead_letters')).to.equal(1);
    await outbox.redeliver({ dead: true });
    expect(await deliverAll()).to.have.length(4);
  });

  it('keeps events that a reorganisation may remove, or has removed', async () => {
    await read(5, [eventIn(5, 7n)]);
    await deliverAll();
    outbox.now += 100 * DAY_MS;
    await read(DEPTH);
    expect(await purge()).to.equal(0);
    await rewindFeed(outbox.database, outbox.feed, { number: 4, hash: undefined }, outbox.now);
    outbox.now += 100 * DAY_MS;
    await read(50, [], 'b');
    expect(await purge()).to.equal(0);
    // Its transaction is mined again much later: the event is still known.
    await read(51, [eventIn(51, 7n, { transactionHash: eventIn(5, 7n).transactionHash }, 'b')], 'b');
    expect(await claim()).to.deep.equal([]);
    // With its retraction, and its announcement under another id, for clients that fetch.
    expect(await kept()).to.deep.equal([5, 51, 51]);
    await read(51 + DEPTH, [], 'b');
    expect(await purge()).to.equal(1);
  });

  it('keeps events that were sent again recently, or are to be sent again', async () => {
    await read(2, [eventIn(1, 1n), eventIn(2, 2n)]);
    await deliverAll();
    outbox.now += 100 * DAY_MS;
    await read(2 + DEPTH);
    await outbox.redeliver({ fromBlock: 2 });
    expect(await purge()).to.equal(1);
    expect(await deliverAll()).to.deep.equal([2]);
    outbox.now += 30 * DAY_MS;
    expect(await purge()).to.equal(0);
    outbox.now += 1;
    expect(await purge()).to.equal(1);
    expect(await rows()).to.deep.equal([0, 0, 0]);
  });

  it('works in small steps, between which others write, until it is stopped', async () => {
    const events = Array.from({ length: MANY }, (_, index) => eventIn(1 + (index % 3), BigInt(index)));
    await read(3, events);
    await deliverAll();
    await read(3 + DEPTH);
    outbox.now += DAY_MS;
    let steps = 0;
    let isOver = false;
    const writing = (async () => {
      for (let block = 4 + DEPTH; !isOver; block++, steps++) {
        await read(block, [eventIn(block, 1n)]);
        await new Promise(setImmediate);
      }
    })();
    const stop = new AbortController();
    const before = outbox.now - 1;
    const counted = countPurgeable(systemTime, outbox.database.db, SAMPLE_FEED, before);
    expect(await counted).to.equal(MANY);
    const first = purgeEvents(systemTime, outbox.database, SAMPLE_FEED, before, stop.signal);
    stop.abort();
    expect(await first).to.be.below(MANY);
    expect((await first) + (await purgeEvents(systemTime, outbox.database, SAMPLE_FEED, before))).to.equal(
      MANY,
    );
    isOver = true;
    await writing;
    expect(steps).to.be.greaterThan(3);
    expect(await deliverAll()).to.have.length(steps);
  });

  it('loses no event sent again at the same time, and marks only removed blocks as purged', async () => {
    const events = Array.from({ length: MANY }, (_, index) => eventIn(1 + index, BigInt(index)));
    await read(MANY, events);
    await deliverAll();
    await read(MANY + DEPTH);
    outbox.now += DAY_MS;
    const [removed, again] = await Promise.all([
      purgeEvents(systemTime, outbox.database, SAMPLE_FEED, outbox.now),
      outbox.redeliver({ fromBlock: 0 }),
    ]);
    const left = new Set(await kept());
    const gone = events.map(({ blockNumber }) => blockNumber).filter((block) => !left.has(block));
    expect(await purgedUpTo(outbox.database.db, SAMPLE_FEED)).to.equal(gone.at(-1));
    expect(await deliverAll()).to.have.length(again.queued);
    expect(removed + again.queued).to.equal(MANY);
  });
});
