import { expect } from 'chai';
import type { KyselyPlugin, QueryId } from 'kysely';
import type { Retraction, ServiceEvent } from '../../client/events';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { changeSink } from '../../service/outbox/claim-queues';
import { fillChannel } from '../../service/outbox/enqueue-stored';
import { presentAnnouncements } from '../../service/outbox/announcements';
import { outboxFiguresOf } from '../../service/outbox/outbox-figures';
import { purgeEvents, restoreEvents } from '../../service/outbox/purge-events';
import { rewindFeed, type Rewound } from '../../service/outbox/rewind-feed';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { aboutOf, RETRACTED_TYPE } from '../../service/events/cloud-event';
import { emptyOutbox, LEASE_MS } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, hashOf, record, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { changeSubscription, subscribe, subscriberOf, type Subscriber } from '../helpers/database/subscriber';
import { schemaProblem } from '../helpers/receiver/schema-problems';

const RETRACTING = { config: { retractions: true } };

describeOnEngines('retractions', (on) => {
  const outbox = emptyOutbox(on);
  const { redeliver, rewind, store } = outbox;
  let subscriber: Subscriber;
  let usual: Subscriber;

  const newSubscriber = async (members: object): Promise<Subscriber> =>
    subscriberOf(outbox, await subscribe(outbox.database, SAMPLE_FEED, members));
  /** Mines events again in a block of another branch. */
  const mineAgain = (block: number, events: RegistryEvent[], branch = 'b'): Promise<number> => {
    const again = events.map((event) => ({ ...event, blockNumber: block, blockHash: hashOf(block, branch) }));
    return store(block, again, branch);
  };
  /** Delivers all that is due to a subscriber. Returns it briefly. */
  const sentTo = async (one: Subscriber): Promise<string[]> => (await one.takeAll()).map(briefly);

  beforeEach(async () => {
    usual = subscriberOf(outbox, outbox.channel);
    subscriber = await newSubscriber(RETRACTING);
  });

  it('retract delivered events, newest of a token first, before the events of the new branch', async () => {
    await store(3, [eventIn(1, 7n), eventIn(2, 7n), eventIn(3, 7n), eventIn(3, 8n)]);
    const told = await subscriber.takeAll();
    await rewind(1);
    await store(2, [eventIn(2, 7n, { transactionHash: `0x${'2b'.repeat(32)}` }, 'b')], 'b');
    const taken = await subscriber.takeAll();
    expect(brieflyOf('7', taken)).to.deep.equal([
      'retracts block 3',
      'retracts block 2',
      'holder_transfer in block 2',
    ]);
    expect(brieflyOf('8', taken)).to.deep.equal(['retracts block 3']);
    const ids = told.filter(({ id }) => retractedBy(taken).includes(id)).map(blockOf);
    expect(ids).to.have.members([2, 3, 3]);
  });

  it('have an id of their own, the token, and no pair, and fit their schema', async () => {
    const event = eventIn(2, 7n);
    const ofRegistry = eventIn(2, 0n, { type: 'registry_paused', tokenId: undefined });
    await store(2, [event, ofRegistry]);
    const told = (await subscriber.takeAll()).find(isOf('7'));
    await rewind(1);
    const retractions = (await subscriber.takeAll()) as Retraction[];
    for (const one of retractions) expect(schemaProblem(one)).to.equal(undefined);
    const [other] = retractions.filter(isOf('0'));
    expect(other?.data).to.include({ tokenId: '0' }).and.not.to.have.property('tokenIdHex');
    const { id, source, subject, time, data } = retractions.find(isOf('7')) as Retraction;
    expect(id).not.to.equal(told?.id);
    expect(time).to.equal(new Date(outbox.now).toISOString());
    expect({ source, subject }).to.deep.equal({ source: told?.source, subject: '7' });
    expect(data).to.include({ tokenId: '7', retracts: told?.id });
    expect(data).not.to.have.any.keys('transactionHash', 'logIndex');
    const { transactionHash, logIndex } = event;
    const retracted = { type: 'com.service.etr.holder_transfer', blockNumber: 2, transactionHash, logIndex };
    expect(data.retracted).to.deep.equal(retracted);
  });

  it('are sent of events that may have been received, and not of those that still waited', async () => {
    await store(2, [eventIn(1, 7n), eventIn(2, 7n), eventIn(2, 7n, { logIndex: 9 }), eventIn(2, 8n)]);
    await subscriber.takeNext();
    // An attempt for token 7 fails. Token 8 has no event left.
    await subscriber.refuse();
    await rewind(1);
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2', 'retracts block 2']);
    expect(await subscriber.takeAll()).to.deep.equal([]);
  });

  it('are sent of an event that the former sink of the subscription may have received', async () => {
    await store(2, [eventIn(2, 7n)]);
    await subscriber.refuse();
    const { channel } = subscriber;
    await changeSink(outbox.database, { channel, sinkHash: 'another', now: outbox.now });
    await rewind(1);
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2']);
  });

  it('are sent of all events that a dead process had claimed, however often the branch changes', async () => {
    const events = [eventIn(2, 7n), eventIn(2, 7n, { logIndex: 9 })];
    await store(2, events);
    const [claimed] = await subscriber.claim();
    expect(await rewind(1)).to.equal('in flight');
    outbox.now += LEASE_MS + 1;
    for (const branch of ['b', 'c']) {
      await rewind(1);
      await mineAgain(2, events, branch);
    }
    const taken = await subscriber.takeAll();
    const told = claimed?.deliveries.map(({ eventId }) => eventId) ?? [];
    expect(taken.map(briefly)).to.deep.equal([
      ...Array<string>(2).fill('retracts block 2'),
      ...Array<string>(2).fill('holder_transfer in block 2'),
    ]);
    expect(retractedBy(taken)).to.deep.equal(told.reverse());
    expect(new Set([...told, ...taken.map(({ id }) => id)]).size).to.equal(6);
  });

  it('are sent of dead letters, and become dead letters that are sent again on request', async () => {
    await store(2, [eventIn(2, 7n)]);
    await subscriber.bury();
    await rewind(1);
    expect(await outbox.deadLetters()).to.deep.equal([]);
    await subscriber.bury();
    const letters = await outbox.deadLetters();
    expect(letters.map(({ type, body }) => [type, aboutOf(body).transactionHash])).to.deep.equal([
      [RETRACTED_TYPE, eventIn(2, 7n).transactionHash],
    ]);
    await redeliver({ dead: true }, subscriber.channel);
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2']);
  });

  it('are followed by the event under a new id when it is mined again, also while they wait', async () => {
    const events = [eventIn(2, 7n), eventIn(2, 7n, { logIndex: 9 })];
    await store(2, events);
    const told = await subscriber.takeAll();
    await rewind(1);
    await mineAgain(3, events);
    const taken = await subscriber.takeAll();
    expect(taken.map(briefly)).to.deep.equal([
      ...Array<string>(2).fill('retracts block 2'),
      ...Array<string>(2).fill('holder_transfer in block 3'),
    ]);
    expect(retractedBy(taken)).to.deep.equal(told.map(({ id }) => id).reverse());
    expect(new Set([...told, ...taken].map(({ id }) => id)).size).to.equal(6);
  });

  it('and their events are not queued if the database gives no keys of their rows', async () => {
    const losing = (table: string): Database => ({
      ...outbox.database,
      db: outbox.database.db.withPlugin(keysLostOf(table)),
    });
    const storeIn = (database: Database, branch = 'a'): Promise<string | number> =>
      record(database, outbox.feed, 2, [eventIn(2, 7n, {}, branch)], outbox.now, branch).catch(String);
    expect(await storeIn(losing('tokens'))).to.contain('no key');
    expect(await subscriber.takeAll()).to.deep.equal([]);
    expect(await storeIn(outbox.database)).to.equal(1);
    await subscriber.takeAll();
    const back = rewindFeed(losing('events'), outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    expect(await back.catch(String)).to.contain('no key');
    expect(await subscriber.takeAll()).to.deep.equal([]);
    await rewind(1);
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2']);
    expect(await storeIn(losing('events'), 'b')).to.contain('no key');
    expect(await storeIn(outbox.database, 'b')).to.be.a('number');
    expect(await sentTo(subscriber)).to.deep.equal(['holder_transfer in block 2']);
  });

  it('leave subscribers without them as they were', async () => {
    const [again, gone] = [eventIn(2, 7n), eventIn(2, 8n)];
    await store(2, [again, gone]);
    const told = await usual.takeAll();
    await subscriber.takeAll();
    const rewound = (await rewind(1)) as Rewound;
    expect(rewound).to.deep.include({ withdrawn: 0 });
    expect(rewound.orphaned).to.have.length(2);
    await mineAgain(3, [again]);
    expect(await usual.takeAll()).to.deep.equal([]);
    expect((await outboxFiguresOf(outbox.database.db, [SAMPLE_FEED]))[0]?.orphaned).to.equal(1);
    await redeliver({ fromBlock: 1 }, usual.channel);
    expect((await usual.takeAll()).map(({ id }) => id)).to.deep.equal([told.find(isOf('7'))?.id]);
  });

  it('reach each subscriber that was told, and no other', async () => {
    const late = await newSubscriber(RETRACTING);
    const event = eventIn(2, 7n);
    await store(2, [event]);
    const [told] = await subscriber.takeAll();
    await rewind(1);
    await mineAgain(3, [event]);
    const [first] = await late.takeAll();
    expect([first?.id, first && blockOf(first)]).to.deep.equal([told?.id, 3]);
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2', 'holder_transfer in block 3']);
    await rewind(2);
    for (const one of [late, subscriber]) expect(await sentTo(one)).to.deep.equal(['retracts block 3']);
  });

  it('take back each announcement once, however often two branches replace each other', async () => {
    const event = eventIn(2, 7n);
    const seen: ServiceEvent[] = [];
    for (const branch of ['a', 'b', 'a', 'b', 'a']) {
      await mineAgain(2, [event], branch);
      seen.push(...(await subscriber.takeAll()));
      await rewind(1);
    }
    seen.push(...(await subscriber.takeAll()));
    expect(new Set(seen.map(({ id }) => id)).size).to.equal(10);
    const announced = seen.filter(({ type }) => type !== RETRACTED_TYPE).map(({ id }) => id);
    expect(retractedBy(seen)).to.deep.equal(announced);
  });

  it('are not repeated when nothing was sent between two reorganisations, as while paused', async () => {
    const event = eventIn(2, 7n);
    await store(2, [event]);
    await subscriber.takeAll();
    const channels = outbox.database.db.updateTable('channels').where('id', '=', subscriber.channel);
    await channels.set({ state: 'paused' }).execute();
    for (const branch of ['b', 'c', 'b']) {
      await rewind(1);
      await mineAgain(2, [event], branch);
      expect(await subscriber.takeAll()).to.deep.equal([]);
    }
    await channels.set({ state: 'active' }).execute();
    expect(await sentTo(subscriber)).to.deep.equal(['retracts block 2', 'holder_transfer in block 2']);
  });

  it('come for types that the subscription lists, whether it lists theirs or not', async () => {
    const selective = await newSubscriber({ ...RETRACTING, types: ['com.service.etr.shred'] });
    const shred = eventIn(2, 7n, { type: 'shred', payload: { remark: '0x' }, logIndex: 9 });
    await store(2, [eventIn(2, 7n), shred]);
    expect(await sentTo(selective)).to.deep.equal(['shred in block 2']);
    await rewind(1);
    expect(await sentTo(selective)).to.deep.equal(['retracts block 2']);
  });

  it('follow the option when it changes', async () => {
    const event = eventIn(2, 7n);
    const changing = await newSubscriber({});
    await store(2, [event]);
    await changing.takeAll();
    await changeSubscription(outbox.database, changing.channel, RETRACTING);
    await rewind(1);
    await mineAgain(2, [event]);
    expect(await sentTo(changing)).to.deep.equal(['retracts block 2', 'holder_transfer in block 2']);
    await changeSubscription(outbox.database, changing.channel, {});
    await rewind(1);
    await mineAgain(2, [event], 'c');
    expect(await changing.takeAll()).to.deep.equal([]);
  });

  it('let stored events be sent again under their present ids', async () => {
    const event = eventIn(2, 7n);
    await store(2, [eventIn(1, 7n), event]);
    const told = await subscriber.takeAll();
    await rewind(1);
    await mineAgain(2, [event]);
    const [retraction, present] = await subscriber.takeAll();
    const again = async (selection: Parameters<typeof redeliver>[0]) => {
      await redeliver(selection, subscriber.channel);
      return (await subscriber.takeAll()).map(({ id }) => id);
    };
    expect(await again({ fromBlock: 1 })).to.deep.equal([told[0]?.id, present?.id]);
    expect(await again({ eventId: told[1]?.id ?? '' })).to.deep.equal([present?.id]);
    expect(await again({ eventId: retraction?.id ?? '' })).to.deep.equal([retraction?.id]);
    await usual.takeAll();
    const nothing = { queued: 0, alreadyWaiting: 0 };
    for (const { id } of [retraction, present] as ServiceEvent[])
      expect(await redeliver({ eventId: id }, usual.channel)).to.deep.equal(nothing);
  });

  it('let a channel that is being filled get events under their present ids', async () => {
    const event = eventIn(2, 7n);
    await store(2, [event]);
    await subscriber.takeAll();
    const { db } = outbox.database;
    await db
      .updateTable('channels')
      .set({ fill_block: 2, fill_index: 7 })
      .where('id', '=', subscriber.channel)
      .execute();
    await rewind(1);
    await mineAgain(2, [event]);
    const taken = await subscriber.takeAll();
    expect(taken.map(briefly)).to.deep.equal(['retracts block 2']);
    const originals = await db.selectFrom('events').selectAll().where('audience', '=', 'all').execute();
    const [present] = await presentAnnouncements(db, subscriber.channel, originals);
    const { id } = JSON.parse(present?.body ?? '') as ServiceEvent;
    expect(retractedBy(taken)).not.to.include(id);
    expect(await presentAnnouncements(db, usual.channel, originals)).to.deep.equal(originals);
    const ofSubscriber = { feed: outbox.feed.id, channel: subscriber.channel };
    expect(await fillChannel(outbox.database, ofSubscriber, outbox.now)).to.equal('filled');
    expect((await subscriber.takeAll()).map((sent) => sent.id)).to.deep.equal([id]);
  });

  /** Delivers all, and purges what it can of the blocks before block 9. */
  const purge = async (): Promise<number> => {
    for (const one of [subscriber, usual]) await one.takeAll();
    await outbox.database.db.deleteFrom('blocks').where('number', '<', 9).execute();
    outbox.now += 1;
    return purgeEvents(systemTime, outbox.database, SAMPLE_FEED, outbox.now);
  };

  it('are purged after their event, with its rows under other ids', async () => {
    const event = eventIn(2, 7n);
    await store(2, [eventIn(1, 8n), event]);
    await subscriber.takeAll();
    await rewind(1);
    await mineAgain(2, [event]);
    await store(9, [eventIn(9, 8n)], 'b');
    const left = async (): Promise<number> => {
      const events = outbox.database.db.selectFrom('events').selectAll().where('block_number', '<', 9);
      return (await events.execute()).length;
    };
    expect(await left()).to.equal(4);
    await purge();
    expect(await left()).to.equal(2);
    await purge();
    expect(await left()).to.equal(0);
  });

  it('do not keep a purged event at the same position from being stored again', async () => {
    const [gone, other] = [eventIn(2, 7n), eventIn(2, 7n, { transactionHash: `0x${'2b'.repeat(32)}` }, 'b')];
    await store(2, [gone]);
    await subscriber.takeAll();
    await rewind(1);
    await store(9, [other], 'b');
    expect(await purge()).to.equal(1);
    const range = { events: [other], fromBlock: 0, toBlock: 8 };
    await restoreEvents(outbox.database, outbox.feed.id, SAMPLE_REGISTRY, range, outbox.now);
    await redeliver({ fromBlock: 1 }, usual.channel);
    expect(await sentTo(usual)).to.deep.equal(['holder_transfer in block 2']);
  });
});

function isRetraction(event: ServiceEvent): event is Retraction {
  return event.type === RETRACTED_TYPE;
}

function retractedBy(events: readonly ServiceEvent[]): string[] {
  return events.filter(isRetraction).map(({ data }) => data.retracts);
}

function blockOf({ data }: ServiceEvent): number {
  if ('retracted' in data) return data.retracted.blockNumber;
  if ('blockNumber' in data) return data.blockNumber;
  throw new Error('the event is of no block');
}

function briefly(event: ServiceEvent): string {
  const verb = isRetraction(event) ? 'retracts' : `${event.type.split('.').at(-1)} in`;
  return `${verb} block ${blockOf(event)}`;
}

function isOf(token: string): (event: ServiceEvent) => boolean {
  return (event) => 'subject' in event && event.subject === token;
}

function brieflyOf(token: string, events: readonly ServiceEvent[]): string[] {
  return events.filter(isOf(token)).map(briefly);
}

/** Drops the keys that statements which add rows to this table return. */
function keysLostOf(table: string): KyselyPlugin {
  const inserts = new WeakSet<QueryId>();
  return {
    transformQuery({ node, queryId }) {
      const isInsert = node.kind === 'InsertQueryNode' && node.into?.table.identifier.name === table;
      if (isInsert) inserts.add(queryId);
      return node;
    },
    transformResult: async ({ result, queryId }) => (inserts.has(queryId) ? { ...result, rows: [] } : result),
  };
}
