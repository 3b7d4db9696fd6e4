import { expect } from 'chai';
import { dedupeKeyOf } from '../../receiver/store';
import type { CloudEvent } from '../../service/events/cloud-event';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { delivered, emptyOutbox, failed } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, hashOf, record } from '../helpers/database/sample-feed';

const TRANSACTION = `0x${'7a'.repeat(32)}`;

/**
 * Earlier versions stored the position of a log in its block, and derived the event's id from it. Here the
 * logs of a transaction are at the positions 2, 3, … of the block, and at 0, 1, … of the transaction.
 */
const FIRST_IN_BLOCK = 2;

/** The remarks of the transaction's events, in order. */
type Said = readonly string[];

describeOnEngines('events that were stored with positions in their blocks,', (on) => {
  const outbox = emptyOutbox(on);
  const { claim, settle } = outbox;
  /** `deliveries`: the bodies that were answered with 200. `sent`: all bodies that were sent. */
  let deliveries: CloudEvent[];
  let sent: CloudEvent[];

  beforeEach(() => {
    deliveries = [];
    sent = [];
  });

  const store = (branch: string, said: Said, positionOf: (index: number) => number): Promise<number> => {
    const events = said.map((remark, index): RegistryEvent => ({
      ...eventIn(2, 7n, { payload: { remark }, transactionHash: TRANSACTION }, branch),
      logIndex: positionOf(index),
      blockLogIndex: FIRST_IN_BLOCK + index,
    }));
    return record(outbox.database, outbox.feed, 2, events, outbox.now, branch);
  };
  const storeAsEarlier = (said: Said): Promise<number> => store('a', said, (index) => FIRST_IN_BLOCK + index);
  const mineAgain = async (branch: string, said: Said): Promise<void> => {
    await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    await store(branch, said, (index) => index);
  };

  /** Delivers waiting events until `most` are delivered; the next one is answered with an error. */
  async function deliver(most = Infinity): Promise<void> {
    for (let heads = await claim(); heads.length > 0; heads = await claim()) {
      for (const head of heads) {
        const event = JSON.parse(head.body) as CloudEvent;
        sent.push(event);
        if (deliveries.length >= most) {
          return void (await settle(failed(head, outbox.now, outbox.now)));
        }
        deliveries.push(event);
        await settle(delivered(head, outbox.now));
      }
    }
  }

  const saidBy = (events: readonly CloudEvent[]): unknown[] => events.map(({ data }) => data.payload.remark);
  const placesOf = (events: readonly CloudEvent[]): number[] => events.map(({ data }) => data.logIndex);

  /** Expects that all deliveries differ by id, and by the pair and the content. */
  function expectToldApart(): void {
    expect(new Set(deliveries.map(({ id }) => id)).size).to.equal(deliveries.length);
    expect(new Set(deliveries.map((event) => dedupeKeyOf(event))).size).to.equal(deliveries.length);
  }

  it('are not delivered again when their transaction is mined again, however often', async () => {
    await storeAsEarlier(['one', 'two', 'three']);
    await deliver();
    for (const branch of ['b', 'c', 'a']) await mineAgain(branch, ['one', 'two', 'three']);
    await deliver();
    expect(saidBy(deliveries)).to.deep.equal(['one', 'two', 'three']);
  });

  const DIFFERENT = ['one', 'two', 'three', 'four', 'five'];
  const EQUAL = ['same', 'same', 'same', 'same'];
  for (const [content, said, delivered] of [
    ['different', DIFFERENT, [0, 2, 5]],
    ['equal', EQUAL, [0, 3]],
  ] as const)
    for (const already of delivered)
      it(`of ${content} content are each delivered once when ${already} of ${said.length} were`, async () => {
        await storeAsEarlier(said);
        await deliver(already);
        await mineAgain('b', said);
        await deliver();
        expect(saidBy(deliveries)).to.deep.equal(said);
        expectToldApart();
      });

  it('keep the id and the position under which they may have been received', async () => {
    await storeAsEarlier(['one', 'two', 'three']);
    await deliver(1);
    const [, attempted] = sent;
    await mineAgain('b', ['one', 'two', 'three']);
    await deliver();
    const [, again, third] = deliveries;
    expect([again?.id, again?.data.logIndex]).to.deep.equal([attempted?.id, attempted?.data.logIndex]);
    expect(again && dedupeKeyOf(again)).to.equal(attempted && dedupeKeyOf(attempted));
    // It was not attempted, but may have been fetched.
    expect(third?.data.logIndex).to.equal(FIRST_IN_BLOCK + 2);
    expectToldApart();
  });

  it('are not delivered again under an id attempted before an earlier reorganisation', async () => {
    // The earlier version gave the event another id in each block, and kept the orphan of the failed
    // attempt.
    await store('a', ['one'], () => 5);
    await deliver(0);
    await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    const { db } = outbox.database;
    await db.updateTable('events').set({ orphaned_at: null }).execute();
    await store('b', ['one'], () => 8);
    await db.updateTable('events').set({ orphaned_at: 1 }).where('block_hash', '=', hashOf(2, 'a')).execute();
    await deliver();
    expect(placesOf(deliveries)).to.deep.equal([8]);

    await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
    await store('c', ['one'], () => 5);
    await deliver();
    expect(placesOf(deliveries)).to.deep.equal([8]);
  });
});
