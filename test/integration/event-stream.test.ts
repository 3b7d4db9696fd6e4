import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pino from 'pino';
import type { ServiceEvent } from '../../client/events';
import { type CursorExpiredError, codeOf } from '../../service/base/errors';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import { aboutFeed } from '../../service/events/conditions';
import { compileRules, type Selection } from '../../service/events/select-events';
import { noteSight, readConditions } from '../../service/outbox/conditions';
import { readStream, readStreams, type StreamPage } from '../../service/outbox/event-stream';
import { keepBlocks, openFeed } from '../../service/outbox/feeds';
import { purgeEvents, restoreEvents } from '../../service/outbox/purge-events';
import { readCursors, type Cursors } from '../../service/outbox/stream-cursor';
import { createEventFetching } from '../../service/subscriptions/fetch-events';
import { addSubscription } from '../../service/subscriptions/stored-subscriptions';
import { blocksOf, delivered, emptyOutbox } from '../helpers/database/empty-outbox';
import { describeOnEngines, newState, openState } from '../helpers/database/engines';
import { eventIn, record, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { subscribe } from '../helpers/database/subscriber';
import { signingKeysOfTest } from '../helpers/receiver/webhook-to';
import { stopLater } from '../helpers/resources';
import { subscriptionWith } from '../helpers/subscription-body';

const TRACE = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;

interface Wanted extends Selection {
  limit?: number;
  retractions?: boolean;
}

describeOnEngines('fetched events', (on, engine) => {
  const outbox = emptyOutbox(on);
  const { store, rewind, deliverAll } = outbox;
  let cursors: Cursors;

  beforeEach(async () => (cursors = await readCursors(on.database.db)));

  const page = async (
    after?: string,
    { limit = 100, retractions = true, ...selection }: Wanted = {},
  ): Promise<StreamPage> => {
    const { db } = on.database;
    const rules = compileRules(
      JSON.stringify({ ...selection, config: { startFrom: 'beginning', retractions } }),
    );
    return readStream(db, cursors, await readStreams(db), { after, limit, rules });
  };
  const briefly = ({ events }: StreamPage): string[] =>
    events.map(({ body }) => {
      const { id, data } = JSON.parse(body) as ServiceEvent;
      if ('retracts' in data) return `retracts ${data.retracts.slice(0, 4)}`;
      return 'blockNumber' in data ? `${id.slice(0, 4)} of ${data.tokenId} in ${data.blockNumber}` : 'other';
    });
  const numbers = ({ events }: StreamPage): number[] =>
    events.map(({ body }) => Number((JSON.parse(body) as { subject: string }).subject));
  const mineAgain = (block: number, token: bigint): Promise<number> => {
    const { transactionHash } = eventIn(2, token);
    return store(block, [eventIn(block, token, { transactionHash }, 'b')], 'b');
  };
  const purge = (before: number): Promise<number> =>
    purgeEvents(systemTime, on.database, SAMPLE_FEED, before);
  const refusal = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('come in the order of recording, from any cursor on, and from none twice', async () => {
    await store(1, [eventIn(1, 1n), eventIn(1, 2n), eventIn(1, 3n)]);
    const all = await page();
    expect(numbers(all)).to.deep.equal([1, 2, 3]);
    expect(numbers(await page(all.cursor))).to.deep.equal([]);
    expect(numbers(await page(all.events[0]?.cursor))).to.deep.equal([2, 3]);
    const first = await page(undefined, { limit: 1 });
    expect([numbers(first), first.isEnd]).to.deep.equal([[1], false]);
    const end = await page('now');
    await store(2, [eventIn(2, 4n)]);
    expect(numbers(await page(end.cursor))).to.deep.equal([4]);
    expect(numbers(await page(first.cursor))).to.deep.equal([2, 3, 4]);
  });

  it('are taken back by a rewind, and come again, although they were never delivered', async () => {
    await store(2, [eventIn(2, 1n), eventIn(2, 2n)]);
    const before = await page();
    await rewind(1);
    await store(2, [], 'b');
    await store(3, [eventIn(3, 3n, {}, 'b')], 'b');
    await mineAgain(4, 2n);
    const [one, two] = before.events.map(({ body }) => (JSON.parse(body) as ServiceEvent).id.slice(0, 4));
    const after = briefly(await page(before.cursor));
    expect(after.slice(0, 2)).to.deep.equal([`retracts ${two}`, `retracts ${one}`]);
    expect(after.slice(2).map((text) => text.slice(5))).to.deep.equal(['of 3 in 3', 'of 2 in 4']);
    expect(after[3]).not.to.contain(two);
    const usual = { retractions: false };
    expect(numbers(await page(before.cursor, usual))).to.deep.equal([3]);
    expect(numbers(await page(undefined, usual))).to.deep.equal([1, 2, 3]);
    await rewind(3);
    const [again] = (await page(undefined)).events.slice(-1);
    expect((JSON.parse(again?.body ?? '') as { data: { retracts: string } }).data.retracts).to.contain(
      after[3]?.slice(0, 4),
    );
    expect(blocksOf(await deliverAll())).to.deep.equal([3]);
  });

  it('are recorded anew when they are mined again, unless they were sent before', async () => {
    await store(2, [eventIn(2, 1n), eventIn(2, 2n)]);
    const [sent] = await outbox.claim(1);
    if (sent) await outbox.settle(delivered(sent, outbox.now));
    await rewind(1);
    const before = outbox.now;
    outbox.now += 1_000;
    await store(2, [eventIn(2, 1n, { trace: TRACE }, 'b'), eventIn(2, 2n, { trace: TRACE }, 'b')], 'b');
    const rows = await on.database.db
      .selectFrom('events')
      .select(['recorded_at', 'trace'])
      .where('audience', '=', 'all')
      .orderBy('id')
      .execute();
    expect(rows.map(({ recorded_at, trace }) => [recorded_at, trace === TRACE])).to.deep.equal([
      [before, false],
      [outbox.now, true],
    ]);
  });

  it('take an event back once for those who fetch, however many channels know it differently', async () => {
    const channel = await subscribe(on.database, SAMPLE_FEED, { config: { retractions: true } });
    await store(2, [eventIn(2, 1n)]);
    await outbox.deliverAll(channel);
    await rewind(1);
    await mineAgain(2, 1n);
    await deliverAll();
    await subscribe(on.database, SAMPLE_FEED, { config: { retractions: true } });
    await rewind(1);
    const retracted = (await page()).events.flatMap(({ body }) => {
      const { data } = JSON.parse(body) as ServiceEvent;
      return 'retracts' in data ? data.retracts : [];
    });
    expect(retracted).to.have.length(2);
    expect(new Set(retracted).size).to.equal(2);
  });

  it('keep the chain order when some of a block are mined again and some are new', async () => {
    await store(2, [eventIn(2, 5n), eventIn(2, 7n)]);
    await rewind(1);
    const end = await page();
    await store(2, [eventIn(2, 5n, {}, 'b'), eventIn(2, 6n, {}, 'b'), eventIn(2, 7n, {}, 'b')], 'b');
    expect(numbers(await page(end.cursor))).to.deep.equal([5, 6, 7]);
  });

  it('that were purged are missed by an older cursor, which learns where to go on', async () => {
    await store(1, [eventIn(1, 1n), eventIn(1, 2n)]);
    const [first] = (await page()).events;
    await deliverAll();
    outbox.now += 1_000;
    await store(200, [eventIn(200, 3n)]);
    await keepBlocks(on.database.db, outbox.feed.id, [], 150);
    expect(await purge(outbox.now)).to.equal(2);
    const error = await refusal(page(first?.cursor));
    expect(codeOf(error)).to.equal('CURSOR_EXPIRED');
    expect(numbers(await page((error as CursorExpiredError).cursor))).to.deep.equal([3]);
    expect(numbers(await page())).to.deep.equal([3]);
    const range = { events: [eventIn(1, 1n), eventIn(1, 2n)], fromBlock: 0, toBlock: 1 };
    expect(await restoreEvents(on.database, outbox.feed.id, SAMPLE_REGISTRY, range, outbox.now)).to.equal(
      true,
    );
    expect(numbers(await page())).to.deep.equal([3]);
  });

  it('come from the new beginning when a purge moves it while they are read', async () => {
    await store(1, [eventIn(1, 1n)]);
    await deliverAll();
    await store(2, [eventIn(2, 2n)]);
    await keepBlocks(on.database.db, outbox.feed.id, [], 1);
    const before = await readStreams(on.database.db);
    const { cursor } = await page('now');
    expect(await purge(outbox.now + 1)).to.equal(1);
    const rules = compileRules(JSON.stringify({ config: { startFrom: 'beginning', retractions: true } }));
    const wanted = { limit: 100, rules };
    expect(numbers(await readStream(on.database.db, cursors, before, wanted))).to.deep.equal([2]);
    expect(numbers(await page(cursor))).to.deep.equal([]);
  });

  it('leave no position to others when the last of them are purged', async () => {
    await store(1, [eventIn(1, 1n)]);
    const all = await page();
    await deliverAll();
    await keepBlocks(on.database.db, outbox.feed.id, [{ number: 1, hash: undefined }], 1);
    expect(await purge(outbox.now + 1)).to.equal(1);
    await store(2, [eventIn(2, 2n)]);
    expect(numbers(await page(all.cursor))).to.deep.equal([2]);
  });

  it('need a cursor of this database', async () => {
    await store(1, [eventIn(1, 1n)]);
    const { cursor } = await page();
    const state = await newState(engine);
    if (state !== undefined) stopLater('another database', () => state[Symbol.asyncDispose]());
    const another = state && (await openState(state));
    const foreign =
      another && (await readCursors(another.db)).write({ positions: new Map([[1, 1]]), turn: 0 });
    const flipped = `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'Q' : 'A'}`;
    for (const text of ['', 'x', '0', 'then', flipped, cursor.slice(2), foreign ?? ''])
      expect(codeOf(await refusal(page(text))), text).to.equal('CURSOR_INVALID');
  });

  it('need another cursor when the database was replaced by an older copy', async () => {
    await store(1, [eventIn(1, 1n)]);
    const { last_position } = await on.database.db
      .selectFrom('feeds')
      .select('last_position')
      .where('feed', '=', SAMPLE_FEED)
      .executeTakeFirstOrThrow();
    await store(2, [eventIn(2, 2n)]);
    const { cursor } = await page();
    await on.database.db.updateTable('feeds').set({ last_position }).execute();
    expect(codeOf(await refusal(page(cursor)))).to.equal('CURSOR_INVALID');
  });

  it('of operations come to those who name their types, with the events of one registry', async () => {
    const types = ['com.service.etr.operations.feed_stopped', 'com.service.etr.holder_transfer'];
    const source = `urn:service:31337:${SAMPLE_REGISTRY.registryAddress}`;
    const subscription = { ...subscriptionWith({ types, source }), id: randomUUID() };
    await addSubscription(on.database, subscription, undefined, 1);
    const about = { ...aboutFeed(`31337:0x${'11'.repeat(20)}`), since: 1 };
    const sight = { conditions: [{ what: 'feed_stopped' as const, ...about }] };
    await noteSight(on.database, 'an observer', { sight, seen: [], now: 1 });
    await store(1, [eventIn(1, 1n)]);
    const typesIn = ({ events }: StreamPage): string[] =>
      events.map(({ body }) => (JSON.parse(body) as ServiceEvent).type);
    expect(typesIn(await page(undefined, { types, source }))).to.have.members(types);
    expect(typesIn(await page(undefined, { source }))).to.deep.equal(types.slice(1));
  });

  it('that few want are looked for a bounded number of rows at a time', async () => {
    const many = Array.from({ length: 2_500 }, (_, index) => eventIn(1, BigInt(index + 1)));
    await store(1, many);
    const rare = { filters: [{ tokens: ['2400'] }] };
    const first = await page(undefined, rare);
    expect([numbers(first), first.isEnd]).to.deep.equal([[], false]);
    expect(numbers(await page(first.cursor, rare))).to.deep.equal([2_400]);
  });

  it('that nobody wants are passed while others have their turns', async () => {
    await store(
      1,
      Array.from({ length: 6_500 }, (_, index) => eventIn(1, BigInt(index + 1))),
    );
    const { database } = on;
    const keys = { signingKeys: signingKeysOfTest() };
    const [lifecycle, logger] = [createLifecycle(), pino({ level: 'silent' })];
    const parts = { database, time: systemTime, lifecycle, logger };
    const fetching = createEventFetching({ ...parts, config: keys });
    const left = new AbortController();
    const rare = { filters: [{ tokens: ['9000'] }] };
    const config = { startFrom: 'beginning', contentType: 'application/json', retractions: false } as const;
    setImmediate(() => left.abort());
    const { cursor } = await fetching.fetch({ ...rare, config }, { limit: 100, wait: 30 }, left.signal);
    await fetching.stop();
    expect((await page(cursor, rare)).isEnd).to.equal(false);
  });

  it('of several registries come in turns, and those of a later one from its beginning', async () => {
    await store(1, [eventIn(1, 1n), eventIn(1, 2n), eventIn(1, 3n)]);
    const first = await page(undefined, { limit: 1 });
    const address = `0x${'77'.repeat(20)}`;
    const other = await openFeed(on.database.db, `31337:${address}:0123456789abcdef`, 1, 1);
    await record(on.database, other, 1, [eventIn(1, 9n)], outbox.now);
    const second = await page(first.cursor, { limit: 1 });
    expect(numbers(second)).to.deep.equal([9]);
    expect(numbers(await page(second.cursor))).to.deep.equal([2, 3]);
    const source = `urn:service:31337:${SAMPLE_REGISTRY.registryAddress}`;
    expect(numbers(await page(undefined, { source }))).to.deep.equal([1, 2, 3]);
  });

  it('fit with the cursor of 1,000 registries into a URL', () => {
    const positions = new Map(Array.from({ length: 1_000 }, (_, feed) => [feed * 3 + 1, 2 ** 31 - feed]));
    const cursor = cursors.write({ positions, turn: 17 });
    expect(cursor.length).to.be.below(14_000);
    expect(cursors.read(cursor)).to.deep.equal({ positions, turn: 17 });
  });

  it('of operations come in the order of their commits from several processes', async () => {
    const types = ['com.service.etr.operations.feed_stopped'];
    const subscription = { ...subscriptionWith({ types }), id: randomUUID() };
    await addSubscription(on.database, subscription, undefined, 1);
    const other = engine === 'PostgreSQL' ? await openState(on.state) : on.database;
    const about = (number: number) => ({ ...aboutFeed(`${number}:0x${'11'.repeat(20)}`), since: 1 });
    const tell = async (database: typeof other, number: number): Promise<unknown> => {
      const sight = { conditions: [{ what: 'feed_stopped' as const, ...about(number) }] };
      const seen = await readConditions(database.db);
      return noteSight(database, `observer ${number}`, { sight, seen, now: 1 });
    };
    const told = Promise.all(
      Array.from({ length: 40 }, (_, number) => tell(number % 2 === 0 ? other : on.database, number + 1)),
    );
    let isDone = false;
    void told.finally(() => (isDone = true));
    const got: string[] = [];
    for (let cursor: string | undefined, isLast = false; !isLast;) {
      isLast = isDone;
      const next = await page(cursor, { types });
      got.push(...next.events.map(({ body }) => (JSON.parse(body) as { subject: string }).subject));
      cursor = next.cursor;
    }
    await told;
    expect(got).to.have.length(40);
    expect(new Set(got).size).to.equal(40);
  });
});
