import { expect } from 'chai';
import { eventsByOperation } from '../../service/answers/delivery-views';
import { RETRACTED_TYPE } from '../../service/events/cloud-event';
import { channelsOf, DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import {
  listDeliveries,
  listEvents,
  type DeliveriesWanted,
  type Place,
} from '../../service/outbox/deliveries';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, hashOf, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { addSubscription, subscribe, subscriberOf, type Subscriber } from '../helpers/database/subscriber';

const OTHER = '0192f3c8-5a00-7000-8000-000000000009';

describeOnEngines('the list of deliveries', (on, engine) => {
  const outbox = emptyOutbox(on);

  /** All pages. Each delivery as `block/token subscription state`. */
  const listed = async (wanted: Omit<DeliveriesWanted, 'limit'>, limit: number): Promise<string[]> => {
    const all: string[] = [];
    let after: Place | undefined;
    do {
      const page = await listDeliveries(outbox.database.db, { ...wanted, after, limit });
      expect(page.deliveries.length).to.be.at.most(limit);
      for (const { event, delivery } of page.deliveries) {
        const to = delivery.subscription === DEFAULT_SUBSCRIPTION ? 'default' : 'other';
        all.push(`${event.blockNumber}/${event.tokenId} ${to} ${delivery.state}`);
      }
      after = page.next;
    } while (after !== undefined);
    return all;
  };
  const subscriberTo = async (subscription: string): Promise<Subscriber> => {
    const [channel] = await channelsOf(outbox.database.db, SAMPLE_FEED, subscription);
    return subscriberOf(outbox, channel?.channel ?? 0);
  };

  it('has each delivery once, the newest event first, however long the pages are', async () => {
    const { database } = outbox;
    await addSubscription(database, {}, OTHER);
    for (const block of [1, 2]) await outbox.store(block, [eventIn(block, 7n)]);
    const gone = await subscriberTo(DEFAULT_SUBSCRIPTION);
    await gone.takeNext();
    await gone.bury();
    await outbox.store(3, [eventIn(3, 7n), eventIn(3, 8n)]);
    await (await subscriberTo(OTHER)).refuse();
    const all = [
      '3/8 default waiting',
      '3/8 other failed',
      '3/7 default waiting',
      '3/7 other waiting',
      '2/7 default dead',
      '2/7 other waiting',
      '1/7 default delivered',
      '1/7 other failed',
    ];
    const ofStates = (...states: string[]): string[] =>
      all.filter((one) => states.some((state) => one.endsWith(state)));
    const expected: [Omit<DeliveriesWanted, 'limit'>, string[]][] = [
      [{}, all],
      [{ states: ['waiting', 'failed', 'dead'] }, ofStates('waiting', 'failed', 'dead')],
      [{ states: ['failed'] }, ofStates('failed')],
      [{ states: ['waiting'] }, ofStates('waiting')],
      [{ states: ['dead'] }, ofStates('dead')],
      [{ states: ['delivered'] }, ofStates('delivered')],
      [{ subscription: OTHER }, all.filter((one) => one.includes('other'))],
      [{ tokenId: '8' }, all.slice(0, 2)],
      [{ tokenId: '7', states: ['dead'] }, ofStates('dead')],
    ];
    for (const limit of [1, 3, 100])
      for (const [wanted, deliveries] of expected)
        expect(await listed(wanted, limit), JSON.stringify({ wanted, limit })).to.deep.equal(deliveries);
  });

  it('is of one event, one token or one registry, and empty if there is none', async () => {
    const { database } = outbox;
    const { db } = database;
    await outbox.store(2, [eventIn(1, 7n), eventIn(2, 7n), eventIn(2, 8n)]);
    const { events, next } = await listEvents(db, { tokenId: '7', limit: 1 });
    expect(events.map(({ registry, tokenId }) => [registry, tokenId])).to.deep.equal([
      [SAMPLE_FEED.split(':').slice(0, 2).join(':'), '7'],
    ]);
    const older = await listEvents(db, { tokenId: '7', from: next, limit: 1 });
    expect(older).to.have.property('next', undefined);
    const [event] = older.events;
    expect(event?.deliveries.map(({ state }) => state)).to.deep.equal(['waiting']);
    expect(await listed({ eventId: event?.eventId }, 5)).to.deep.equal(['1/7 default waiting']);
    const { registryAddress } = SAMPLE_REGISTRY;
    expect(await listed({ registry: registryAddress }, 5)).to.have.length(3);
    for (const wanted of [
      { eventId: OTHER },
      { eventId: 'no id' },
      { tokenId: '9' },
      { registry: registryAddress.replaceAll('5b', '6b') },
      { subscription: 'unknown' },
      { subscription: 'unknown', states: ['waiting'] as const },
    ])
      expect(await listed(wanted, 5), JSON.stringify(wanted)).to.deep.equal([]);
  });

  it('has no events that only clients may have that fetch', async () => {
    await outbox.store(2, [eventIn(2, 7n), eventIn(2, 8n)]);
    await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    const { transactionHash } = eventIn(2, 7n);
    await outbox.store(3, [eventIn(3, 7n, { transactionHash }, 'b')], 'b');
    const { events } = await listEvents(outbox.database.db, {});
    expect(events.map(({ blockNumber, tokenId }) => [blockNumber, tokenId])).to.deep.equal([[3, '7']]);
  });

  it('has the events of a token by operation, without retractions and orphaned events', async () => {
    const { database, feed } = outbox;
    const channel = await subscribe(database, SAMPLE_FEED, { config: { retractions: true } });
    const moved = eventIn(2, 7n);
    await outbox.store(3, [eventIn(1, 7n), moved, eventIn(3, 7n)]);
    await subscriberOf(outbox, channel).takeAll();
    await subscriberOf(outbox, outbox.channel).refuse();
    await rewindFeed(database, feed, { number: 1, hash: hashOf(1) }, outbox.now);
    const { transactionHash } = moved;
    const again = { ...moved, blockNumber: 4, blockHash: hashOf(4, 'b') };
    const beside = eventIn(4, 7n, { transactionHash, logIndex: 9, type: 'beneficiary_transfer' }, 'b');
    await outbox.store(4, [again, beside], 'b');
    const { events } = await listEvents(database.db, { tokenId: '7' });
    expect(events.map(({ type }) => type)).to.include(RETRACTED_TYPE);
    expect(events.filter(({ isOrphaned }) => isOrphaned).map(({ blockNumber }) => blockNumber)).to.include(3);
    const eventsOf = eventsByOperation(events, false);
    const typesIn = (blockNumber: number): string[] =>
      eventsOf({ transactionHash, blockNumber }).map(({ type }) => type.replace(/^.*\./, ''));
    expect(typesIn(2)).to.deep.equal([]);
    expect(new Set(typesIn(4))).to.deep.equal(new Set(['holder_transfer', 'beneficiary_transfer']));
    expect(eventsOf(eventIn(1, 7n))).to.have.length(1);
    expect(eventsOf(eventIn(3, 7n))).to.deep.equal([]);
    const [shown] = eventsByOperation(events, true)(eventIn(1, 7n));
    const outcomes = shown?.deliveries?.map(({ state, attempts, error }) => [state, attempts, error]);
    expect(outcomes).to.have.deep.members([
      ['failed', 1, 'answered 500'],
      ['delivered', 1, null],
    ]);
  });

  // It looks at all events, and not at those that wait: the engine has no part in that.
  if (engine !== 'SQLite') return;

  it('goes through all events when very many wait', async () => {
    const { database } = outbox;
    const { db } = database;
    const quiet = await subscribe(database, SAMPLE_FEED, { filters: [{ tokens: ['1'] }] });
    const count = 5_001;
    const events = Array.from({ length: count }, (_, index) => eventIn(1, BigInt(index + 1)));
    await outbox.store(1, events);
    const seen: string[] = [];
    let pages = 0;
    let after: Place | undefined;
    do {
      const page = await listDeliveries(db, { states: ['waiting'], after, limit: 1_000 });
      seen.push(...page.deliveries.map(({ event, delivery }) => `${event.tokenId} ${delivery.subscription}`));
      after = page.next;
      pages++;
    } while (after !== undefined);
    expect(new Set(seen).size).to.equal(count + 1);
    expect(seen).to.have.length(count + 1);
    expect(pages).to.be.at.most(7);
    await subscriberOf(outbox, quiet).refuse();
    const failed = await listed({ states: ['failed'] }, 1);
    expect(failed).to.deep.equal(['1/1 other failed']);
  });
});
