import { expect } from 'chai';
import type { KyselyPlugin } from 'kysely';
import pino from 'pino';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime, newDeferred } from '../../service/base/time';
import { realisedOptions } from '../../service/base/delivery-options';
import type { Database } from '../../service/database/database';
import { attemptQueue } from '../../service/delivery/attempt-delivery';
import { releaseLeases, type ClaimedQueue } from '../../service/outbox/claim-queues';
import { setHeld } from '../../service/outbox/feeds';
import { outboxFiguresOf } from '../../service/outbox/outbox-figures';
import { listEvents } from '../../service/outbox/deliveries';
import type { Rewound } from '../../service/outbox/rewind-feed';
import type { Settlement } from '../../service/outbox/settle-queues';
import { attempt, blocksOf, emptyOutbox, failed, LEASE_MS } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { clientOf, startWorker } from '../helpers/database/running-worker';
import { eventIn, record, SAMPLE_FEED } from '../helpers/database/sample-feed';

/** The first `count` events of a claimed queue were delivered. */
function deliveredOf(queue: ClaimedQueue, count: number, now: number): Settlement {
  const delivered = queue.deliveries.slice(0, count);
  return { queue, delivered: delivered.map((delivery) => ({ delivery, attempt: attempt(now) })) };
}

/** The first `count` events were delivered, and the next one failed. */
function failedAfter(
  queue: ClaimedQueue,
  count: number,
  now: number,
  nextAttemptAt: number | undefined,
): Settlement {
  const delivery = queue.deliveries[count];
  if (delivery === undefined) throw new Error('the queue has no such event');
  const failure = { delivery, attempt: attempt(now, 'answered 500'), nextAttemptAt };
  return { ...deliveredOf(queue, count, now), failed: failure };
}

/** Blocks from `first` to `last`. */
function blocks(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

describeOnEngines('delivery by queue', (on, engine) => {
  const outbox = emptyOutbox(on);
  const { claimQueues, rewound, settle } = outbox;

  /** Records an event of token 7 in each of the blocks. */
  const store = (first: number, last: number, branch = 'a'): Promise<number> => {
    const events = blocks(first, last).map((block) => eventIn(block, 7n, {}, branch));
    return outbox.store(last, events, branch);
  };
  const claimOne = async (): Promise<ClaimedQueue> => {
    const [queue, ...others] = await claimQueues();
    if (queue === undefined || others.length > 0) throw new Error('one queue should be due');
    return queue;
  };
  /** Sends at most so many events of a claimed queue; one may fail. Returns the blocks that were sent. */
  const send = async (queue: ClaimedQueue, { failsAt = 0, most = Infinity }) => {
    const sent: number[] = [];
    const options = {
      client: clientOf((body) => {
        const [block = 0] = blocksOf([{ body }]);
        sent.push(block);
        return block === failsAt ? 500 : 200;
      }),
      retry: realisedOptions({}).retry,
      time: { ...systemTime, now: () => outbox.now },
      random: () => 0,
      logger: pino({ level: 'silent' }),
      lifecycle: createLifecycle(),
      registry: 'operations' as const,
    };
    const settlement = await attemptQueue(options, queue, () => sent.length < most);
    return { sent, settlement };
  };
  /** The state of the event of a block, with the statuses of its attempts. */
  const stateOf = async (block: number): Promise<unknown[]> => {
    const { events } = await listEvents(outbox.database.db, {});
    const [history] = events.find(({ blockNumber }) => blockNumber === block)?.deliveries ?? [];
    return [history?.state, ...(history?.attempts ?? []).map(({ status }) => status)];
  };
  /** Whether no process has claimed a queue. */
  const isReleased = async (): Promise<boolean> => {
    const leased = outbox.database.db.selectFrom('queues').select('token').where('lease', 'is not', null);
    return (await leased.execute()).length === 0;
  };
  const outcomes = ({ orphaned }: Rewound): string[] =>
    orphaned.map(({ blockNumber, outcome }) => `${blockNumber} ${outcome}`);

  it('claims at most 32 events of a queue, in order, and no more until they are settled', async () => {
    await store(1, 40);
    await outbox.store(41, [eventIn(41, 8n), eventIn(41, 9n)]);
    const queues = await claimQueues();
    const claimed = queues.map(({ deliveries }) => blocksOf(deliveries));
    expect(claimed).to.have.deep.members([blocks(1, 32), [41], [41]]);
    expect(await claimQueues()).to.deep.equal([]);
    await settle(...queues.map((queue) => deliveredOf(queue, 32, outbox.now)));
    expect(blocksOf((await claimOne()).deliveries)).to.deep.equal(blocks(33, 40));
  });

  it('stops at the first failure; the events behind it are not sent and count no attempt', async () => {
    await store(1, 7);
    outbox.now += 10;
    const { sent, settlement } = await send(await claimOne(), { failsAt: 6 });
    expect(sent).to.deep.equal(blocks(1, 6));
    expect(await settle(settlement)).to.deep.equal([]);
    expect(await stateOf(5)).to.deep.equal(['delivered', 200]);
    expect(await stateOf(6)).to.deep.equal(['failed', 500]);
    expect(await stateOf(7)).to.deep.equal(['waiting']);
    expect(await claimQueues()).to.deep.equal([]);
    const firstAttemptedAt = outbox.now;
    outbox.now = settlement.failed?.nextAttemptAt ?? 0;
    const again = await claimOne();
    expect(again.firstAttemptedAt).to.equal(firstAttemptedAt);
    expect(blocksOf(again.deliveries)).to.deep.equal([6, 7]);
    expect(again.deliveries.map(({ attempt }) => attempt)).to.deep.equal([2, 1]);
  });

  it('goes on at once behind a dead letter in the middle', async () => {
    await store(1, 5);
    const queue = await claimOne();
    await settle(failedAfter(queue, 2, outbox.now, undefined));
    const letters = await outbox.deadLetters();
    expect(blocksOf(letters)).to.deep.equal([3]);
    const next = await claimOne();
    expect(blocksOf(next.deliveries)).to.deep.equal([4, 5]);
    expect(next.deliveries.map(({ attempt }) => attempt)).to.deep.equal([1, 1]);
    await settle(deliveredOf(next, 2, outbox.now));
    expect(await outbox.waiting()).to.deep.equal([]);
  });

  it('has waited since it was due, however often it was claimed and not sent', async () => {
    const since = outbox.now;
    await store(1, 2);
    const waitingSince = async (): Promise<unknown> => {
      const [figures] = await outboxFiguresOf(outbox.database.db, [SAMPLE_FEED]);
      return figures?.oldestWaitingSince;
    };
    for (const pause of [10, 20]) {
      outbox.now += pause;
      const { settlement } = await send(await claimOne(), { most: 0 });
      expect(await waitingSince()).to.equal(since);
      await settle(settlement);
      expect(await waitingSince()).to.equal(since);
    }
    outbox.now += 30;
    const { settlement } = await send(await claimOne(), { failsAt: 1 });
    await settle(settlement);
    const firstAttemptedAt = outbox.now;
    outbox.now = settlement.failed?.nextAttemptAt ?? 0;
    expect((await claimOne()).firstAttemptedAt, 'giving up counts from the first attempt').to.equal(
      firstAttemptedAt,
    );
  });

  it('counts an attempt only for events that were sent before the claim was released', async () => {
    await store(1, 5);
    const first = await send(await claimOne(), { most: 0 });
    expect(first.sent).to.deep.equal([]);
    await settle(first.settlement);
    outbox.now += 10;
    const again = await claimOne();
    expect([again.firstAttemptedAt, again.deliveries[0]?.attempt]).to.deep.equal([outbox.now, 1]);
    const second = await send(again, { most: 2 });
    expect(second.sent).to.deep.equal([1, 2]);
    await settle(second.settlement);
    outbox.now += 10;
    const third = await claimOne();
    expect(third.firstAttemptedAt).to.equal(outbox.now);
    expect(blocksOf(third.deliveries)).to.deep.equal([3, 4, 5]);
    expect(third.deliveries.map(({ attempt }) => attempt)).to.deep.equal([1, 1, 1]);
  });

  it('treats all events of a claim whose process died as possibly sent, whatever comes next', async () => {
    await store(1, 5);
    await claimOne();
    await store(6, 7);
    outbox.now += LEASE_MS;
    await settle(failedAfter(await claimOne(), 1, outbox.now, outbox.now));
    const back = await rewound(0);
    const attempted = blocks(2, 5).map((block) => `${block} attempted`);
    expect(outcomes(back)).to.deep.equal(['1 delivered', ...attempted]);
    expect(back.withdrawn).to.equal(6);
  });

  it('remembers them after a start released leases and after part of the queue was withdrawn', async () => {
    await store(1, 5);
    await claimOne();
    await releaseLeases(outbox.database.db, outbox.channel, outbox.now);
    expect(outcomes(await rewound(3))).to.deep.equal(['4 attempted', '5 attempted']);
    await store(4, 6, 'b');
    // Blocks 4 and 5 were possibly sent on the earlier branch; block 6 was not.
    await settle(deliveredOf(await claimOne(), 1, outbox.now));
    expect(outcomes(await rewound(1))).to.deep.equal(['2 attempted', '3 attempted']);
  });

  it('sends only in the first half of the lease, and settles before it ends', async () => {
    await store(1, 8);
    let now = outbox.now;
    const sent: { block: number | undefined; lease: string | null; remainsMs: number }[] = [];
    const post = async (body: string): Promise<number> => {
      const claimed = outbox.database.db.selectFrom('queues').select(['lease', 'next_attempt_at']);
      const { lease, next_attempt_at } = await claimed.executeTakeFirstOrThrow();
      sent.push({ block: blocksOf([{ body }])[0], lease, remainsMs: (next_attempt_at ?? 0) - now });
      now += 2_500;
      return 200;
    };
    const time = { ...systemTime, now: () => now };
    const worker = startWorker(outbox.database, outbox.channel, post, { time });
    await eventually('all are sent', () => sent.length === 8);
    await worker.stop();
    expect(sent.map(({ block }) => block)).to.deep.equal(blocks(1, 8));
    // The lease is twice the timeout of 1 s, and 10 s.
    const perClaim = [12_000, 9_500, 7_000];
    const remaining = [...perClaim, ...perClaim, ...perClaim.slice(0, 2)];
    expect(sent.map(({ remainsMs }) => remainsMs)).to.deep.equal(remaining);
    expect(new Set(sent.map(({ lease }) => lease)).size).to.equal(3);
    expect(await stateOf(8)).to.deep.equal(['delivered', 200]);
  });

  it('tries again in time when the clock is set back by an hour, also after an error', async () => {
    const { channel } = outbox;
    outbox.now = systemTime.now();
    await store(1, 2);
    // The first statement that ends the pauses fails.
    let statements = 0;
    const failing: KyselyPlugin = {
      transformQuery({ node }) {
        if (JSON.stringify(node).includes('"paused"') && ++statements === 1) throw new Error('no connection');
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const database: Database = { ...outbox.database, db: outbox.database.db.withPlugin(failing) };
    let setBackMs = 0;
    const sent: number[] = [];
    const post = (body: string): number => {
      sent.push(...blocksOf([{ body }]));
      return sent.length === 1 ? 500 : 200;
    };
    const time = { ...systemTime, now: () => systemTime.now() - setBackMs };
    const worker = startWorker(database, channel, post, { time });
    await eventually('it failed', async () => {
      const [queue] = await database.db.selectFrom('queues').select(['attempts', 'lease']).execute();
      return queue?.attempts === 1 && queue.lease === null;
    });
    setBackMs = 3_600_000;
    await eventually('the pauses are ended', () => statements === 2);
    await eventually('both are delivered', () => sent.length === 3);
    await worker.stop();
    expect(sent).to.deep.equal([1, 1, 2]);
  });

  for (const minutes of [5, 60])
    it(`tries again at the start when the clock was set back by ${minutes} minutes before it`, async () => {
      const { database, channel } = outbox;
      outbox.now = systemTime.now();
      await store(1, 1);
      const [head] = await outbox.claim();
      if (head) await outbox.settle(failed(head, outbox.now, outbox.now + 2_000));
      const sent: string[] = [];
      const time = { ...systemTime, now: () => systemTime.now() - minutes * 60_000 };
      const worker = startWorker(database, channel, (body) => (sent.push(body), 200), { time });
      await eventually('it is delivered', () => sent.length === 1);
      await worker.stop();
    });

  it('keeps a pause of three days if the schedule has such pauses', async () => {
    const { database, channel } = outbox;
    outbox.now = systemTime.now();
    const DAY_MS = 24 * 3_600_000;
    await store(1, 1);
    const [head] = await outbox.claim();
    if (head) await outbox.settle(failed(head, outbox.now, outbox.now + 3 * DAY_MS));
    await outbox.store(2, [eventIn(2, 8n)]);
    const sent: number[] = [];
    const post = (body: string): number => (sent.push(...blocksOf([{ body }])), 200);
    const retry = { ...realisedOptions({}).retry, maxDelayMs: 5 * DAY_MS };
    await using worker = startWorker(database, channel, post, { retry });
    await eventually('the other token is delivered', () => sent.includes(2));
    await worker.stop();
    expect(sent).to.deep.equal([2]);
  });

  it('settles a delivery at its stop although the database fails once then', async () => {
    await record(outbox.database, outbox.feed, 1, [eventIn(1, 7n)], systemTime.now());
    const answer = newDeferred<number>();
    let [isSent, failures] = [false, 0];
    const database: Database = {
      ...outbox.database,
      async transact(work) {
        if (isSent && ++failures === 1) throw new Error('no connection');
        return outbox.database.transact(work);
      },
    };
    const worker = startWorker(database, outbox.channel, () => ((isSent = true), answer.promise));
    await eventually('it is sent', () => isSent);
    const stopped = worker.stop();
    answer.resolve(200);
    await stopped;
    expect(failures).to.equal(2);
    expect(await stateOf(1)).to.deep.equal(['delivered', 200]);
  });

  it('stops after the delivery under way when a feed is held, and goes on after the release', async () => {
    const { database, feed, channel } = outbox;
    outbox.now = systemTime.now();
    await store(1, 5);
    const sent: number[] = [];
    await using worker = startWorker(database, channel, async (body) => {
      sent.push(...blocksOf([{ body }]));
      if (sent.length === 2) {
        await setHeld(database.db, feed, 1);
        worker.hold();
      }
      return 200;
    });
    await eventually('the queue is settled', async () => {
      const [queue] = await database.db.selectFrom('queues').select(['head', 'lease']).execute();
      return queue?.head === 3 && queue.lease === null;
    });
    expect(sent).to.deep.equal([1, 2]);
    await setHeld(database.db, feed, 0);
    worker.wake();
    await eventually('the others are sent', () => sent.length === 5);
    expect(sent).to.deep.equal(blocks(1, 5));
  });

  it('sends nothing more after a 410, drops nothing, and goes on when the channel is resumed', async () => {
    const { database, channel } = outbox;
    outbox.now = systemTime.now();
    const events = [7n, 8n, 9n].flatMap((token) => [eventIn(1, token), eventIn(2, token)]);
    await outbox.store(2, events);
    let answer = 410;
    const sent: string[] = [];
    const post = (body: string): number => (sent.push(body), answer);
    await using worker = startWorker(database, channel, post, { maxConcurrentDeliveries: 1 });
    await eventually('the channel is stopped', async () => {
      const { state } = await database.db.selectFrom('channels').select('state').executeTakeFirstOrThrow();
      return state === 'gone' && (await isReleased());
    });
    expect(sent).to.have.length(1);
    expect(await outbox.deadLetters()).to.deep.equal([]);
    answer = 200;
    await database.db.updateTable('channels').set({ state: 'active' }).execute();
    worker.wake();
    await eventually('all are sent', () => sent.length === 7);
    expect(sent.slice(1)).to.include(sent[0]);
    expect(new Set(sent).size).to.equal(6);
    for (const token of ['7', '8', '9']) {
      const ofToken = sent.slice(1).filter((body) => body.includes(`"subject":"${token}"`));
      expect(blocksOf(ofToken.map((body) => ({ body })))).to.deep.equal([1, 2]);
    }
  });

  // SQLite has one connection, where a claim is answered before the hold is written.
  if (engine === 'SQLite') return;

  it('gives deliveries back whose claim is answered after a hold, and sends them after release', async () => {
    const { database, feed } = outbox;
    const events = [1n, 2n, 3n].map((token) => eventIn(1, token));
    await record(database, feed, 1, events, systemTime.now());
    const answer = newDeferred<undefined>();
    let [isClaimed, isDelayed] = [false, true];
    // The database has executed the statements, and its answers are delayed.
    const delay: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        isClaimed ||= result.rows.some((row) => 'body' in row);
        if (isClaimed && isDelayed) await answer.promise;
        return result;
      },
    };
    const db = database.db.withPlugin(delay);
    const sent: string[] = [];
    const delayed: Database = { ...database, db, transact: (work) => db.transaction().execute(work) };
    await using worker = startWorker(delayed, outbox.channel, (body) => (sent.push(body), 200));
    await eventually('it has claimed', () => isClaimed);
    await setHeld(database.db, feed, 1);
    worker.hold();
    isDelayed = false;
    answer.resolve(undefined);
    await eventually('it is given back', isReleased);
    expect(sent).to.deep.equal([]);
    await setHeld(database.db, feed, 0);
    worker.wake();
    await eventually('all are sent', () => sent.length === events.length);
  });
});
