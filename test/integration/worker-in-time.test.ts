import { expect } from 'chai';
import type { KyselyPlugin } from 'kysely';
import { newDeferred } from '../../service/base/time';
import { realisedOptions } from '../../service/base/delivery-options';
import type { Database } from '../../service/database/database';
import type { PostResult, WebhookClient } from '../../service/delivery/attempt-delivery';
import type { SlotShare } from '../../service/delivery/delivery-slots';
import type { DeliveryWorker, DeliveryWorkerOptions } from '../../service/delivery/worker';
import { emptyOutbox, failed, type ClaimedHead } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { clientOf, startWorker } from '../helpers/database/running-worker';
import { eventIn } from '../helpers/database/sample-feed';
import { tellOfStatements, VirtualTime } from '../helpers/virtual-time';

const HOUR_MS = 3_600_000;
/** The worker pauses for so long after an error of the database. */
const PAUSE_MS = 1_000;
/** At its stop, it aborts the requests that take longer. */
const STOP_WITHIN_MS = 8_000;
/** An answer after this time is not prompt. */
const PROMPT_MS = 2_000;
const { retry } = realisedOptions({});
/** A database with a plugin has an executor of its own. */
const NOTHING: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  transformResult: async ({ result }) => result,
};

type Options = Partial<Pick<DeliveryWorkerOptions, 'retry' | 'slots'> & Pick<WebhookClient, 'abort'>>;

describeOnEngines('a delivery worker', (on) => {
  const outbox = emptyOutbox(on);
  let time: VirtualTime;
  /** The statements of the worker, during which time stands still. Its transactions may fail. */
  let database: Database;
  let failsNext: () => boolean;
  /** When each request began. */
  let sentAt: number[];
  let worker: DeliveryWorker;

  beforeEach(() => {
    time = new VirtualTime(outbox.now);
    [sentAt, failsNext] = [[], () => false];
    const db = outbox.database.db.withPlugin(NOTHING);
    tellOfStatements({ db }, time);
    const transact: Database['transact'] = async (work) => {
      if (failsNext()) throw new Error('no connection');
      return db.transaction().execute(work);
    };
    database = { ...outbox.database, db, transact };
  });

  afterEach(() => time.settled(worker.stop()));

  /** Starts the worker, which first finds nothing to send. */
  const startIdle = async (answer: () => number): Promise<void> => {
    const post = (): number => (sentAt.push(time.now()), answer());
    worker = startWorker(database, outbox.channel, post, { time });
    await time.pass(1_000);
    outbox.now = time.now();
  };
  /** Starts the worker, and waits until it sends an event. */
  const startSending = async (
    answer: () => Promise<PostResult>,
    { abort = () => undefined, ...options }: Options = {},
  ): Promise<void> => {
    await outbox.store(1, [eventIn(1, 7n)]);
    const post = (): Promise<PostResult> => (sentAt.push(time.now()), answer());
    const client = { ...clientOf(() => 200), abort, post };
    worker = startWorker(database, outbox.channel, () => 200, { ...options, client, time });
    await time.until('it is sent', () => sentAt.length === 1);
  };
  const isSent = (count: number, withinMs?: number): Promise<unknown> =>
    time.until(`${count} requests`, () => sentAt.length === count, withinMs);
  const dueAt = async (): Promise<number | null | undefined> =>
    (await outbox.database.db.selectFrom('queues').select('next_attempt_at').executeTakeFirst())
      ?.next_attempt_at;

  it('claims again after an error, although it expected nothing to be due', async () => {
    await startIdle(() => 200);
    await outbox.store(1, [eventIn(1, 7n)]);
    let failures = 0;
    failsNext = () => ++failures === 1;
    worker.wake();
    await isSent(1);
    expect(time.now() - outbox.now).to.equal(PAUSE_MS);
  });

  it('tries again after the pause, although it expected nothing to be due before', async () => {
    await startIdle(() => (sentAt.length === 1 ? 500 : 200));
    await outbox.store(1, [eventIn(1, 7n)]);
    worker.wake();
    await isSent(2);
    expect((sentAt[1] ?? 0) - (sentAt[0] ?? 0)).to.equal(retry.initialDelayMs);
  });

  it('does not try again what another has tried, until its pause is over', async () => {
    await outbox.store(1, [eventIn(1, 7n)]);
    const post = (): number => (sentAt.push(time.now()), 500);
    const others = [1, 2].map(() => startWorker(database, outbox.channel, post, { time }));
    worker = startWorker(database, outbox.channel, post, { time });
    await isSent(5);
    await time.settled(Promise.all(others.map((other) => other.stop())));
    const pauses = sentAt.slice(1).map((at, index) => at - (sentAt[index] ?? 0));
    expect(pauses).to.deep.equal([1, 2, 4, 8].map((times) => times * retry.initialDelayMs));
  });

  it('sends what another process postponed whose clock was an hour ahead', async () => {
    await startIdle(() => 200);
    await outbox.store(1, [eventIn(1, 7n)]);
    const [head] = (await outbox.claim()) as [ClaimedHead];
    await outbox.settle(failed(head, outbox.now + HOUR_MS, outbox.now + HOUR_MS + retry.initialDelayMs));
    await isSent(1, HOUR_MS);
  });

  for (const [outcome, giveUpAfterMs, letters] of [
    ['makes an event due at once whose attempt fails', retry.giveUpAfterMs, 0],
    ['gives an event up whose last attempt fails', 0, 1],
  ] as const)
    it(`${outcome} at its stop`, async () => {
      const answer = newDeferred<PostResult>();
      await startSending(() => answer.promise, { retry: { ...retry, giveUpAfterMs } });
      const stopped = worker.stop();
      answer.resolve({ status: 500 });
      await time.settled(stopped);
      expect(await dueAt()).to.equal(letters === 0 ? time.now() : null);
      expect(await outbox.deadLetters()).to.have.length(letters);
    });

  it('aborts at its stop a request that is not answered, and makes its event due at once', async () => {
    const answer = newDeferred<PostResult>();
    const abort = (): void => answer.resolve({ status: undefined, failure: 'the service was stopped' });
    await startSending(() => answer.promise, { abort });
    const since = time.now();
    await time.settled(worker.stop());
    expect(time.now() - since).to.equal(STOP_WITHIN_MS);
    expect(await dueAt()).to.equal(time.now());
  });

  it('stops although the database is gone', async () => {
    const answer = newDeferred<PostResult>();
    await startSending(() => answer.promise);
    failsNext = () => true;
    const stopped = worker.stop();
    answer.resolve({ status: 200 });
    await time.settled(stopped);
  });

  for (const [outcome, afterMs, status, wasPrompt] of [
    ['prompt', PROMPT_MS, 200, true],
    ['prompt, also if it is no success', PROMPT_MS, 500, true],
    ['not prompt', PROMPT_MS + 1, 200, false],
    ['not prompt if it is none', 0, undefined, false],
  ] as const)
    it(`takes an answer for ${outcome}, after ${afterMs} ms`, async () => {
      const paces: unknown[] = [];
      const slots: SlotShare = {
        most: 1,
        take: () => true,
        release: (pace) => void paces.push(pace),
        leave: () => undefined,
      };
      await startSending(() => time.sleep(afterMs).then(() => ({ status })), { slots });
      await time.until('it ended', () => paces.length === 1);
      expect(paces).to.deep.equal([wasPrompt]);
    });
});
