import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sql, type Transaction } from 'kysely';
import { systemTime } from '../../service/base/time';
import type { Schema } from '../../service/database/schema';
import { ALL_SUBSCRIPTIONS, noteChange } from '../../service/outbox/changes';
import { channelsOf } from '../../service/outbox/channels';
import type { CloudEvent } from '../../service/events/cloud-event';
import { openFeed, type KeptBlock } from '../../service/outbox/feeds';
import { fillChannel } from '../../service/outbox/enqueue-stored';
import { deliveriesOfEvent } from '../../service/outbox/deliveries';
import { outboxFiguresOf } from '../../service/outbox/outbox-figures';
import { purgeEvents, removeLeftoverQueues } from '../../service/outbox/purge-events';
import { recordRange } from '../../service/outbox/record-range';
import { takeTurn } from '../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../service/registry/registry-event';
import {
  addSubscription,
  removeSubscription,
  replaceSubscription,
} from '../../service/subscriptions/stored-subscriptions';
import { attempt, emptyOutbox, headOf, type ClaimedHead } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, hashOf, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { eventually } from '../helpers/eventually';
import { subscriptionWith } from '../helpers/subscription-body';

const OTHER_FEED = `80002:0x${'6c'.repeat(20)}:fedcba9876543210`;

describeOnEngines('several channels of a feed', (on, engine) => {
  const outbox = emptyOutbox(on);
  const { rewound: rewind, store } = outbox;
  /** The channel of `default`. */
  let first: number;
  /** The channel of a subscription of the API, and its name. */
  let second: number;
  let name: string;

  beforeEach(async () => {
    name = await subscribe();
    first = outbox.channel;
    second = await channelOf(SAMPLE_FEED, name);
  });

  async function subscribe(members: object = {}): Promise<string> {
    const id = randomUUID();
    await addSubscription(outbox.database, { ...subscriptionWith(members), id }, undefined, outbox.now);
    return id;
  }
  async function channelOf(feed: string, subscription: string): Promise<number> {
    const [channel, ...others] = await channelsOf(outbox.database.db, feed, subscription);
    if (channel === undefined || others.length > 0) throw new Error('a subscription has one channel');
    return channel.channel;
  }
  /** Delivers all that waits in a channel; returns the events. */
  const deliver = async (channel: number): Promise<CloudEvent[]> =>
    (await outbox.deliverAll(channel)).map(({ body }) => JSON.parse(body) as CloudEvent);
  const blocksIn = (events: readonly CloudEvent[]): number[] => events.map(({ data }) => data.blockNumber);
  /** Claims the first event of the only queue of a channel that is due. */
  async function claimOne(channel: number): Promise<ClaimedHead> {
    const [head, ...others] = await outbox.claim(100, channel);
    if (head === undefined || others.length > 0) throw new Error('one queue should be due');
    return head;
  }
  /** The first event of the only queue that is due fails, and is tried again at a time. */
  async function fail(channel: number, nextAttemptAt?: number, isGone = false): Promise<void> {
    const { queue, ...delivery } = await claimOne(channel);
    const failed = { delivery, attempt: attempt(outbox.now, 'answered 500'), nextAttemptAt, isGone };
    await outbox.settle({ queue, delivered: [], failed });
  }
  const waitingIn = async (subscription: string): Promise<number> => {
    const waiting = await outbox.waiting();
    return waiting
      .filter((one) => one.subscription === subscription)
      .reduce((sum, one) => sum + one.waiting, 0);
  };

  it('are counted together in the figures of their feed', async () => {
    await store(2, [eventIn(1, 7n), eventIn(2, 7n)]);
    const oldestWaitingSince = outbox.now;
    outbox.now += 1_000;
    await fail(second);
    const registry = SAMPLE_FEED.split(':').slice(0, 2).join(':');
    const figures = { registry, nextBlock: 3, waiting: 3, deadLetters: 1, orphaned: 0 };
    const figuresNow = () => outboxFiguresOf(outbox.database.db, [SAMPLE_FEED, OTHER_FEED]);
    expect(await figuresNow()).to.deep.equal([{ ...figures, oldestWaitingSince }]);
    await outbox.database.db.updateTable('channels').set({ state: 'paused' }).execute();
    expect(await figuresNow()).to.deep.equal([{ ...figures, oldestWaitingSince: undefined }]);
  });

  it('goes on in one channel while another backs off', async () => {
    await store(2, [eventIn(1, 7n), eventIn(2, 7n)]);
    await fail(first, outbox.now + 1_000);
    expect(blocksIn(await deliver(second))).to.deep.equal([1, 2]);
    await store(3, [eventIn(3, 7n)]);
    expect(blocksIn(await deliver(second))).to.deep.equal([3]);
    expect(await deliver(first)).to.deep.equal([]);
    outbox.now += 1_000;
    expect(blocksIn(await deliver(first))).to.deep.equal([1, 2, 3]);
  });

  it('sends an event mined again only to the channel that did not get it, from its new block', async () => {
    const event = eventIn(2, 7n);
    await store(2, [event]);
    const [sent] = await deliver(first);
    const rewound = await rewind(1);
    expect(rewound.orphaned.map(({ outcome }) => outcome)).to.deep.equal(['delivered']);
    expect(await deliver(second)).to.deep.equal([]);
    const block = { number: 3, hash: hashOf(3, 'b') };
    const again = { ...event, blockNumber: 3, blockHash: block.hash };
    const range = { events: [again], blocks: [block], oldestKept: 0, nextBlock: 4 };
    const { database, feed, now } = outbox;
    const { channels } = await recordRange(database, feed, SAMPLE_REGISTRY, range, now);
    expect(channels).to.deep.equal([second]);
    expect(await deliver(first)).to.deep.equal([]);
    const [toSecond, ...others] = await deliver(second);
    expect(others).to.deep.equal([]);
    expect(toSecond?.id).to.equal(sent?.id);
    expect(toSecond?.data.blockNumber).to.equal(3);
    const later = await channelOf(SAMPLE_FEED, await subscribe({ config: { startFrom: 3 } }));
    await fillChannel(database, { feed: feed.id, channel: later }, now);
    expect(blocksIn(await deliver(later)), 'to a later subscription too').to.deep.equal([3]);
    expect((await rewind(2)).orphaned).to.have.length(1);
  });

  it('sends an event again with its id to a channel where an attempt had failed', async () => {
    const event = eventIn(2, 7n);
    await store(2, [event]);
    const [sent] = await deliver(first);
    await fail(second, outbox.now);
    await rewind(1);
    await store(3, [{ ...event, blockNumber: 3, blockHash: hashOf(3, 'b'), logIndex: 9 }], 'b');
    expect(await deliver(first)).to.deep.equal([]);
    expect((await deliver(second)).map(({ id }) => id)).to.deep.equal([sent?.id]);
  });

  it('gives an event to no channel twice after several reorganisations', async () => {
    const event = eventIn(2, 7n);
    const on = (branch: string): RegistryEvent => ({ ...event, blockHash: hashOf(2, branch) });
    await store(2, [on('a')]);
    expect(await deliver(first)).to.have.length(1);
    await rewind(1);
    await store(2, [on('b')], 'b');
    expect(await deliver(second)).to.have.length(1);
    for (const branch of ['c', 'a', 'b']) {
      await rewind(1);
      await store(2, [on(branch)], branch);
      for (const channel of [first, second]) expect(await deliver(channel)).to.deep.equal([]);
    }
  });

  it('keeps old events while one channel still has to get them', async () => {
    await store(1, [eventIn(1, 7n)]);
    const block: KeptBlock = { number: 50, hash: hashOf(50) };
    const range = { events: [], blocks: [block], oldestKept: 40, nextBlock: 51 };
    await recordRange(outbox.database, outbox.feed, SAMPLE_REGISTRY, range, outbox.now);
    await deliver(first);
    outbox.now += 1_000;
    const purge = (): Promise<number> => purgeEvents(systemTime, outbox.database, SAMPLE_FEED, outbox.now);
    expect(await purge()).to.equal(0);
    await fail(second);
    expect(await purge()).to.equal(0);
    expect(await outbox.deadLetters()).to.have.length(1);
    await outbox.redeliver({ dead: true }, second);
    expect(blocksIn(await deliver(second))).to.deep.equal([1]);
    outbox.now += 1;
    expect(await purge()).to.equal(1);
    for (const table of ['deliveries', 'attempts'] as const) {
      const rows = await outbox.database.db.selectFrom(table).select('event').execute();
      expect(rows, table).to.deep.equal([]);
    }
  });

  it('sends events again to one channel alone', async () => {
    await store(2, [eventIn(1, 7n), eventIn(2, 8n)]);
    const [event] = await deliver(first);
    await deliver(second);
    const again = await outbox.redeliver({ fromBlock: 1 }, second);
    expect(again).to.deep.equal({ queued: 2, alreadyWaiting: 0 });
    expect(await deliver(first)).to.deep.equal([]);
    expect(await deliver(second)).to.have.length(2);
    const [told] = await deliveriesOfEvent(outbox.database.db, event?.id ?? '');
    expect(told?.deliveries.map(({ attempts }) => attempts.length)).to.deep.equal([1, 2]);
  });

  it('sends nothing twice to a channel that was being filled when the chain was reorganised', async () => {
    const events = Array.from({ length: 250 }, (_, index) => eventIn(index + 1, 7n));
    await store(250, events);
    const third = await channelOf(SAMPLE_FEED, await subscribe({ config: { startFrom: 'beginning' } }));
    const fill = () => fillChannel(outbox.database, { feed: outbox.feed.id, channel: third }, outbox.now);
    expect(await fill()).to.equal('more');
    const before = await deliver(third);
    expect(before).to.have.length(200);
    await rewind(190);
    const again = events.slice(190).map((event) => ({ ...event, blockHash: hashOf(event.blockNumber, 'b') }));
    await store(250, again, 'b');
    expect(await fill()).to.equal('filled');
    const after = await deliver(third);
    expect(blocksIn([...before, ...after])).to.deep.equal(events.map(({ blockNumber }) => blockNumber));
  });

  it('stops all channels of a subscription after a 410, but of `default` only the one', async () => {
    const { db } = outbox.database;
    const version = async (): Promise<number | undefined> =>
      (await db.selectFrom('subscription_changes').select('version').executeTakeFirst())?.version;
    await openFeed(db, OTHER_FEED, 1, outbox.now);
    await store(1, [eventIn(1, 7n)]);
    const states = async (subscription: string): Promise<string[]> => {
      const feeds = await Promise.all(
        [SAMPLE_FEED, OTHER_FEED].map((feed) => channelsOf(db, feed, subscription)),
      );
      return feeds.flat().map(({ state }) => state);
    };
    const before = await version();
    await fail(second, outbox.now, true);
    expect(await version(), 'for other processes').to.equal((before ?? 0) + 1);
    expect(await states(name)).to.deep.equal(['gone', 'gone']);
    expect(await states('default')).to.deep.equal(['active', 'active']);
    expect(await deliver(second)).to.deep.equal([]);
    await fail(first, outbox.now, true);
    expect(await states('default')).to.deep.equal(['gone', 'active']);
    expect(await waitingIn('default')).to.equal(1);
    expect(await waitingIn(name)).to.equal(1);
  });

  it('is stopped by no 410 of the sink that it had before a change, and waits for none', async () => {
    await store(1, [eventIn(1, 7n)]);
    const before = outbox.now;
    const head = await claimOne(second);
    const moved = { ...subscriptionWith({ sink: 'https://new.example/' }), id: name };
    await replaceSubscription(outbox.database, name, () => moved, undefined, before + 5);
    /** It was sent to the sink of this time, and failed. Returns the event if it is due at once. */
    const failAt = async (changedAt: number, { queue, ...delivery }: ClaimedHead, outcome: object) => {
      const failed = { delivery, attempt: attempt(before, 'it failed'), nextAttemptAt: before };
      const { claimed } = await takeTurn(outbox.database, {
        settlements: [{ queue, delivered: [], failed: { ...failed, ...outcome } }],
        claim: { channel: second, lease: 'next', limit: 1, perQueue: 1, now: before, leaseMs: 1 },
        mayBeDue: false,
        sentTo: { changedAt, sinkHash: 'a sink' },
      });
      return claimed.map(headOf) as [ClaimedHead];
    };
    const states = async (): Promise<string[]> =>
      (await channelsOf(outbox.database.db, SAMPLE_FEED, name)).map(({ state }) => state);
    const [again] = await failAt(before, head, { nextAttemptAt: before + 60_000 });
    const [last] = await failAt(before, again, { isGone: true });
    expect(await states()).to.deep.equal(['active']);
    await failAt(before + 5, last, { isGone: true });
    expect(await states()).to.deep.equal(['gone']);
  });

  it('is not deleted without force while it has a dead letter, or events to be enqueued', async () => {
    await store(1, [eventIn(1, 7n)]);
    await fail(second);
    const remove = (which: string) => removeSubscription(outbox.database, which, false);
    expect(await remove(name)).to.include({ undelivered: 1, isRemoved: false });
    const filling = await subscribe({ config: { startFrom: 'beginning' } });
    expect(await remove(filling)).to.include({ undelivered: 1, isRemoved: false });
  });

  it('does not use the key of a deleted channel again', async () => {
    await removeSubscription(outbox.database, name, true);
    expect(await channelOf(SAMPLE_FEED, await subscribe())).to.be.greaterThan(second);
  });

  for (const [what, remove] of Object.entries({
    'that is deleted by force': async () => {
      expect(await removeSubscription(outbox.database, name, true)).to.include({ undelivered: 2 });
    },
    'whose deletion a kill interrupted': async () => {
      await outbox.database.db.deleteFrom('channels').where('id', '=', second).execute();
      await removeLeftoverQueues(outbox.database);
    },
  }))
    it(`removes the queues of a subscription ${what}, and no others`, async () => {
      await store(1, [eventIn(1, 7n), eventIn(1, 8n)]);
      await remove();
      for (const table of ['queues', 'deliveries'] as const) {
        const rows = await outbox.database.db.selectFrom(table).select('channel').execute();
        expect(rows.map(({ channel }) => channel)).to.deep.equal([first, first]);
      }
    });

  /** Begins a transaction that changes subscriptions, and ends it when `other` waits for it. */
  async function whileChanging(
    other: () => Promise<unknown>,
    change: (transaction: Transaction<Schema>) => Promise<unknown>,
    finish: (transaction: Transaction<Schema>) => Promise<unknown>,
  ): Promise<void> {
    const { db } = outbox.database;
    let waiting: Promise<unknown> | undefined;
    await db.transaction().execute(async (transaction) => {
      await noteChange(transaction, ALL_SUBSCRIPTIONS);
      await change(transaction);
      waiting = other();
      waiting.catch(() => undefined);
      await eventually('it waits', async () => {
        const { rows } = await sql`select 1 from pg_locks where not granted`.execute(db);
        return rows.length > 0;
      });
      await finish(transaction);
    });
    await waiting;
  }

  it('stops a channel without deadlock while its subscription is changed', async function () {
    if (engine === 'SQLite') return this.skip();
    await store(1, [eventIn(1, 7n)]);
    const { queue, ...delivery } = await claimOne(second);
    const failure = { delivery, attempt: attempt(outbox.now, 'answered 410'), nextAttemptAt: outbox.now };
    await whileChanging(
      () => outbox.settle({ queue, delivered: [], failed: { ...failure, isGone: true } }),
      (db) => db.updateTable('subscriptions').set({ changed_at: 2 }).where('name', '=', name).execute(),
      (db) => db.updateTable('channels').set({ state: 'active' }).where('id', '=', second).execute(),
    );
    const [channel] = await channelsOf(outbox.database.db, SAMPLE_FEED, name);
    expect(channel?.state).to.equal('gone');
  });

  it('gives a new feed to a subscription that is added at the same time', async function () {
    if (engine === 'SQLite') return this.skip();
    const values = { name: randomUUID(), secrets: null, created_at: 1, changed_at: 1 };
    const definition = JSON.stringify(subscriptionWith());
    await whileChanging(
      () => openFeed(outbox.database.db, OTHER_FEED, 1, outbox.now),
      (db) =>
        db
          .insertInto('subscriptions')
          .values({ ...values, definition })
          .execute(),
      async () => undefined,
    );
    expect(await channelsOf(outbox.database.db, OTHER_FEED, values.name)).to.have.length(1);
  });
});
