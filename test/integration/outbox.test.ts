import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { sql, type QueryId } from 'kysely';
import { ServiceError } from '../../service/base/errors';
import { makeDue, releaseLease } from '../../service/outbox/claim-queues';
import { findFeeds, openFeed } from '../../service/outbox/feeds';
import { recordRange } from '../../service/outbox/record-range';
import { deliveriesOfEvent } from '../../service/outbox/deliveries';
import { headsOfQueues } from '../helpers/database/stored-queues';
import type { CloudEvent } from '../../service/events/cloud-event';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { describeOnEngines } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import {
  blocksOf,
  dead,
  delivered,
  emptyOutbox,
  failed,
  LEASE_MS,
  type ClaimedHead,
} from '../helpers/database/empty-outbox';
import {
  eventIn,
  openSampleFeed,
  record,
  SAMPLE_FEED,
  SAMPLE_REGISTRY,
} from '../helpers/database/sample-feed';

describeOnEngines('the outbox', (on, engine) => {
  const outbox = emptyOutbox(on);
  const { claim, settle, store } = outbox;

  it('keeps registry events apart from those of token 0, which have the same subject', async () => {
    const paused = eventIn(1, 0n, { type: 'registry_paused', tokenId: undefined, logIndex: 1 });
    await store(1, [eventIn(1, 0n), paused]);
    const heads = await claim();
    const bodies = heads.map(({ body }) => JSON.parse(body) as CloudEvent);
    expect(bodies.map(({ subject, data }) => [subject, data.tokenId, data.tokenIdHex])).to.have.deep.members([
      ['0', '0', '0'.repeat(64)],
      ['0', '0', undefined],
    ]);
  });

  it('puts registry events stored with the address as subject into the queue of the registry', async () => {
    const registryEvent = (block: number): RegistryEvent =>
      eventIn(block, 0n, { type: 'registry_paused', tokenId: undefined });
    await store(1, [registryEvent(1)]);
    const { db } = outbox.database;
    const stored = await db.selectFrom('events').select('body').executeTakeFirstOrThrow();
    const subject = SAMPLE_REGISTRY.registryAddress;
    const body = JSON.stringify({ ...(JSON.parse(stored.body) as CloudEvent), subject });
    await db.updateTable('events').set({ body }).execute();
    const [head] = (await claim()) as [ClaimedHead];
    await settle(delivered(head, outbox.now));
    await store(2, [registryEvent(2)]);
    await outbox.redeliver({ eventId: head.eventId });
    const [waiting, ...others] = await headsOfQueues(db, [SAMPLE_FEED]);
    expect(others).to.deep.equal([]);
    expect(waiting).to.include({ waiting: 2 });
  });

  it('stores a range with thousands of events, all of them or none', async () => {
    const events = Array.from({ length: 1_500 }, (_, index) =>
      eventIn(1, BigInt(index % 50), { logIndex: index }),
    );
    const broken = { ...eventIn(1, 1n), logIndex: 9_999, blockHash: null as unknown as string };
    expect(await store(1, [...events, broken]).catch(() => 'failed')).to.equal('failed');
    expect(await outbox.waiting()).to.have.length(0);
    expect(await store(1, events)).to.equal(1_500);
    expect(await store(1, events), 'read again').to.equal(0);
    const waiting = await outbox.waiting();
    expect(waiting.map((stream) => stream.waiting)).to.deep.equal(Array<number>(50).fill(30));
  });

  it('refuses late events from an earlier reader of the feed', async () => {
    await openSampleFeed(outbox.database);
    const readAgain = { events: [eventIn(1, 7n)] };
    for (const late of [
      store(1, [eventIn(1, 7n)]),
      recordRange(outbox.database, outbox.feed, SAMPLE_REGISTRY, readAgain, outbox.now),
    ]) {
      const failure = await late.catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(ServiceError).and.include({ code: 'CURSOR_MOVED', retryable: true });
    }
    expect(await claim()).to.deep.equal([]);
  });

  it('hands out a delivery again when its lease ends, and ignores the earlier holder', async () => {
    await store(1, [eventIn(1, 7n), eventIn(1, 7n, { logIndex: 8 })]);
    // It was due long before, so its first attempt did not begin then.
    outbox.now += 10 * 3_600_000;
    const [slow] = (await claim()) as [ClaimedHead];
    outbox.now += LEASE_MS;
    const [again] = (await claim()) as [ClaimedHead];
    const { eventId, firstAttemptedAt } = slow;
    expect(again).to.include({ eventId, attempt: 2, firstAttemptedAt });
    expect(await settle(delivered(slow, outbox.now))).to.have.length(1);
    expect(await claim()).to.deep.equal([]);
    const givenUp = dead(slow, outbox.now);
    expect(await settle(givenUp, delivered(again, outbox.now))).to.deep.equal([givenUp]);
    expect(await outbox.deadLetters()).to.deep.equal([]);
    const [next] = (await claim()) as [ClaimedHead];
    expect(next.eventId).not.to.equal(again.eventId);
  });

  const DAY_MS = 24 * 3_600_000;
  const makeAllDue = (): Promise<void> => {
    const { database, channel, now } = outbox;
    return makeDue(database.db, { channel, now, leaseMs: LEASE_MS }, DAY_MS);
  };

  it('makes only those deliveries due that a clock postponed before it was set back', async () => {
    const HOUR_MS = 3_600_000;
    const fail = (head: ClaimedHead | undefined, pauseMs: number): unknown =>
      head && settle(failed(head, outbox.now, outbox.now + pauseMs));
    const headsOf = async (): Promise<Record<string, ClaimedHead>> =>
      Object.fromEntries((await claim()).map((head) => [head.tokenId, head]));
    const before = outbox.now;
    await store(1, [eventIn(1, 5n), eventIn(1, 6n)]);
    const earlier = await headsOf();
    // The receiver asked for this pause.
    await fail(earlier['5'], 2 * HOUR_MS);
    await settle(delivered(earlier['6'] as ClaimedHead, outbox.now));
    outbox.now += HOUR_MS;
    await store(1, [eventIn(1, 7n), eventIn(1, 8n), eventIn(1, 10n)]);
    await outbox.redeliver({ eventId: earlier['6']?.eventId ?? '' });
    const { 7: seven, 6: six } = await headsOf();
    await fail(seven, 500);
    await fail(six, 500);
    // The deliveries of tokens 8 and 10 are never settled: their process died.
    await store(1, [eventIn(1, 11n)]);
    outbox.now = before + 1_000;
    await store(2, [eventIn(2, 9n)]);
    const { 9: nine, ...others } = await headsOf();
    expect(others).to.deep.equal({});
    await fail(nine, 500);
    await makeAllDue();
    expect(Object.keys(await headsOf())).to.have.members(['6', '7', '8', '10', '11']);
    outbox.now += 500;
    expect(Object.keys(await headsOf())).to.deep.equal(['9']);
    outbox.now = before + 2 * HOUR_MS;
    expect(Object.keys(await headsOf())).to.include('5');
  });

  it('makes no delivery due that another process postponed or claimed by a clock 5 s ahead', async () => {
    await store(1, [eventIn(1, 7n), eventIn(1, 8n)]);
    const [first] = (await claim(1)) as [ClaimedHead];
    await settle(failed(first, outbox.now, outbox.now + 12 * 3_600_000));
    expect(await claim(1)).to.have.length(1);
    outbox.now -= 5_000;
    await makeAllDue();
    expect(await claim()).to.deep.equal([]);
  });

  it('makes a delivery due whose pause is longer than any, although its attempt is past', async () => {
    await store(1, [eventIn(1, 7n), eventIn(1, 8n)]);
    const [first, second] = (await claim()) as [ClaimedHead, ClaimedHead];
    await settle(failed(first, outbox.now, outbox.now + DAY_MS));
    await settle(failed(second, outbox.now, outbox.now + 2 * DAY_MS));
    await makeAllDue();
    expect((await claim()).map(({ eventId }) => eventId)).to.deep.equal([second.eventId]);
  });

  it('dates the first failure of a channel anew when the clock is set back', async () => {
    await store(1, [eventIn(1, 7n)]);
    const failingSince = async (): Promise<number | null | undefined> =>
      (await outbox.database.db.selectFrom('channels').select('failing_since').executeTakeFirst())
        ?.failing_since;
    const before = outbox.now;
    for (const time of [before + 3_600_000, before, before + 1_000]) {
      outbox.now = Math.max(time, outbox.now);
      const [head] = (await claim()) as [ClaimedHead];
      outbox.now = time;
      await settle(failed(head, outbox.now));
    }
    expect(await failingSince()).to.equal(before);
  });

  it('finds an event that is delivered while its deliveries are read, and one without any', async () => {
    await store(1, [eventIn(1, 7n)]);
    const [head] = (await claim()) as [ClaimedHead];
    const ofQueues = new WeakSet<QueryId>();
    const db = outbox.database.db.withPlugin({
      transformQuery({ node, queryId }) {
        if (JSON.stringify(node).includes('"next_attempt_at"')) ofQueues.add(queryId);
        return node;
      },
      async transformResult({ result, queryId }) {
        if (ofQueues.has(queryId)) await settle(delivered(head, outbox.now));
        return { ...result, rows: ofQueues.has(queryId) ? [] : result.rows };
      },
    });
    const [found] = await deliveriesOfEvent(db, head.eventId);
    expect(found?.deliveries.map(({ state }) => state)).to.deep.equal(['delivered']);
    await outbox.database.db.deleteFrom('attempts').execute();
    const [bare] = await deliveriesOfEvent(outbox.database.db, head.eventId);
    expect(bare).to.include({ eventId: head.eventId }).and.deep.include({ deliveries: [] });
  });

  it('makes an event that waits for another attempt due now, if somebody asks for it', async () => {
    const HOUR_MS = 3_600_000;
    await store(1, [eventIn(1, 7n)]);
    const [head] = (await claim()) as [ClaimedHead];
    for (const isUnderWay of [true, false]) {
      if (!isUnderWay) await settle(failed(head, outbox.now, outbox.now + HOUR_MS));
      expect(await claim()).to.deep.equal([]);
      expect(await outbox.redeliver({ eventId: head.eventId })).to.deep.equal({
        queued: 0,
        alreadyWaiting: 1,
      });
      if (isUnderWay) expect(await claim()).to.deep.equal([]);
    }
    const [again] = (await claim()) as [ClaimedHead];
    expect(again).to.include({ eventId: head.eventId, attempt: 2 });
  });

  it('sends all events from a block on again, in order, except those that wait anyway', async () => {
    const events = Array.from({ length: 500 }, (_, index) => eventIn(index + 1, BigInt(index % 25)));
    await store(500, events);
    await outbox.deliverAll();
    await store(501, [eventIn(501, 0n)]);
    const again = await outbox.redeliver({ fromBlock: 101 });
    expect(again).to.deep.equal({ queued: 400, alreadyWaiting: 1 });
    const sent = await outbox.deliverAll();
    expect(sent).to.have.length(401);
    const ofToken0 = blocksOf(sent.filter(({ tokenId }) => tokenId === '0'));
    expect(ofToken0[0]).to.equal(501);
    expect(ofToken0.slice(1)).to.deep.equal([...ofToken0.slice(1)].sort((left, right) => left - right));
  });

  it('releases a claim whose answer was lost, without counting an attempt', async () => {
    await store(1, [eventIn(1, 7n)]);
    const [lost] = (await claim()) as [ClaimedHead];
    const other = { channel: outbox.channel, lease: 'of somebody else', now: outbox.now };
    await releaseLease(outbox.database.db, other);
    expect(await claim()).to.deep.equal([]);
    outbox.now += 5;
    await releaseLease(outbox.database.db, { ...other, lease: lost.queue.lease, now: outbox.now });
    const [again] = await claim();
    expect(again).to.include({ eventId: lost.eventId, attempt: 1, firstAttemptedAt: outbox.now });
  });

  it('finds the latest feed of each registry, by address or by chain and address', async () => {
    const { db } = outbox.database;
    const address = SAMPLE_REGISTRY.registryAddress;
    const [anew, elsewhere] = [`31337:${address}:fedcba9876543210`, `80002:${address}:0123456789abcdef`];
    await store(1, [eventIn(1, 7n)]);
    await openFeed(db, anew, 1, 2);
    await openFeed(db, elsewhere, 1, 2);
    expect(await findFeeds(db)).to.have.members([anew, elsewhere]);
    expect(await findFeeds(db, address.toUpperCase().replace('0X', '0x'))).to.have.members([anew, elsewhere]);
    expect(await findFeeds(db, `80002:${address}`)).to.deep.equal([elsewhere]);
    expect(await findFeeds(db, `0x${'00'.repeat(20)}`)).to.deep.equal([]);
  });

  it('begins a feed where it is told, until the feed has recorded an event', async () => {
    const { db } = outbox.database;
    let feed = outbox.feed;
    const begun = async (startBlock: number): Promise<[number, number[]]> => {
      const { id, epoch, cursor } = await openFeed(db, SAMPLE_FEED, startBlock, 1);
      feed = { feed: SAMPLE_FEED, id, epoch };
      return [cursor.nextBlock, cursor.kept.map(({ number }) => number)];
    };
    expect(await begun(900)).to.deep.equal([900, [899]]);
    expect(await begun(5)).to.deep.equal([5, [4]]);
    await record(outbox.database, feed, 20, [], outbox.now);
    expect(await begun(5), 'told the same').to.deep.equal([21, [4, 20]]);
    expect(await begun(3)).to.deep.equal([3, [2]]);
    await record(outbox.database, feed, 20, [eventIn(12, 7n)], outbox.now);
    expect(await begun(1)).to.deep.equal([21, [2, 12, 20]]);
  });

  it('hands each delivery to one of several workers, without deadlock while events are added', async () => {
    const tokens = Array.from({ length: 40 }, (_, index) => BigInt(index));
    const seen = new Map<string, number[]>();
    let isAdding = true;
    const add = async (): Promise<void> => {
      for (let block = 1; block <= 15; block++) {
        // The order differs from that of the streams' names.
        const events = [...tokens].reverse().map((token) => eventIn(block, token));
        await store(block, events);
      }
      isAdding = false;
    };
    const work = async (): Promise<void> => {
      for (;;) {
        const wasAdding = isAdding;
        const heads = await claim(7);
        for (const head of heads)
          seen.set(head.tokenId, [...(seen.get(head.tokenId) ?? []), ...blocksOf([head])]);
        const lost = await settle(...heads.reverse().map((head) => delivered(head, outbox.now)));
        expect(lost).to.deep.equal([]);
        if (heads.length > 0) continue;
        if (!wasAdding) return;
        await turn();
      }
    };
    await Promise.all([add(), work(), work(), work(), work()]);
    expect(seen.size).to.equal(40);
    const inOrder = Array.from({ length: 15 }, (_, index) => index + 1);
    for (const blocks of seen.values()) expect(blocks).to.deep.equal(inOrder);
  });

  it('locks the queues of a long range in the order of their keys', async function () {
    if (engine === 'SQLite') return this.skip();
    const { db } = outbox.database;
    const tokens = Array.from({ length: 300 }, (_, index) => BigInt(index + 1));
    const eventsIn = (block: number): RegistryEvent[] => tokens.map((token) => eventIn(block, token));
    await store(1, eventsIn(1));
    const queues = await db.selectFrom('queues').select('token').orderBy('token').execute();
    const [first, ...others] = queues.map(({ token }) => token);
    const backwards = eventsIn(2).reverse();
    let recording: Promise<number> | undefined;
    await db.transaction().execute(async (transaction) => {
      const lock = (token = 0): Promise<unknown> =>
        transaction.selectFrom('queues').select('token').where('token', '=', token).forUpdate().execute();
      await lock(first);
      recording = store(2, backwards);
      await eventually('it waits for the first queue', async () => {
        const { rows } = await sql`select 1 from pg_locks where not granted`.execute(db);
        return rows.length > 0;
      });
      await lock(others.at(-1));
    });
    expect(await recording).to.equal(300);
  });
});
