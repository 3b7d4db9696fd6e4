import { expect } from 'chai';
import { dedupeKeyOf } from '../../receiver/received-event';
import { eventIdOf, type CloudEvent } from '../../service/outbox/cloud-event';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { attempt, delivered, emptyOutbox } from '../helpers/database/empty-outbox';
import { ENGINES } from '../helpers/database/engines';
import { eventIn, hashOf, record, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const TRANSACTION = `0x${'7a'.repeat(32)}`;

/**
 * Earlier versions counted a log among the logs of its block, and made its id of that. Here a transaction has
 * its logs at the positions 2, 3, … of its block; among its own they are 0, 1, …
 */
const FIRST_IN_BLOCK = 2;

/** Events of the transaction by what they say, in its order. */
type Said = readonly string[];

for (const engine of ENGINES) {
  describe(`events that were stored with positions in their blocks, on ${engine}`, () => {
    const outbox = emptyOutbox(engine);
    const { claim, settle } = outbox;
    /** Every body that was answered with 200, and every one that was sent. */
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
    const storeAsEarlier = (said: Said): Promise<number> =>
      store('a', said, (index) => FIRST_IN_BLOCK + index);
    const mineAgain = async (branch: string, said: Said): Promise<void> => {
      await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
      await store(branch, said, (index) => index);
    };

    /** Delivers what waits; all after the first `most` are answered with an error, once. */
    async function deliver(most = Infinity): Promise<void> {
      for (let heads = await claim(); heads.length > 0; heads = await claim()) {
        for (const head of heads) {
          const event = JSON.parse(head.body) as CloudEvent;
          sent.push(event);
          if (deliveries.length >= most) {
            const failed = { attempt: attempt(outbox.now, 'no answer'), nextAttemptAt: outbox.now };
            return void (await settle({ delivery: head, outcome: 'failed', ...failed }));
          }
          deliveries.push(event);
          await settle(delivered(head, outbox.now));
        }
      }
    }

    const saidBy = (events: readonly CloudEvent[]): unknown[] =>
      events.map(({ data }) => data.payload.remark);
    const placesOf = (events: readonly CloudEvent[]): number[] => events.map(({ data }) => data.logIndex);

    /** Each has an id of its own, and whoever goes by the pair and the content takes all of them. */
    function expectToldApart(): void {
      expect(new Set(deliveries.map(({ id }) => id)).size).to.equal(deliveries.length);
      expect(new Set(deliveries.map(dedupeKeyOf)).size).to.equal(deliveries.length);
    }

    it('are delivered with the bytes that were stored', async () => {
      await storeAsEarlier(['one', 'two', 'three']);
      await deliver();
      expect(placesOf(deliveries)).to.deep.equal([2, 3, 4]);
      expect(deliveries.map(({ id }) => id)).to.deep.equal(
        [2, 3, 4].map((position) => eventIdOf(SAMPLE_REGISTRY.chainId, TRANSACTION, position)),
      );
    });

    it('are not announced again when their transaction is mined again, however often', async () => {
      await storeAsEarlier(['one', 'two', 'three']);
      await deliver();
      for (const branch of ['b', 'c', 'a']) await mineAgain(branch, ['one', 'two', 'three']);
      await deliver();
      expect(saidBy(deliveries)).to.deep.equal(['one', 'two', 'three']);
    });

    for (const already of [0, 1, 2, 3, 4, 5]) {
      it(`are completed, each announced once, when ${already} of 5 were delivered`, async () => {
        const said = ['one', 'two', 'three', 'four', 'five'];
        await storeAsEarlier(said);
        await deliver(already);
        await mineAgain('b', said);
        await deliver();
        expect(saidBy(deliveries)).to.deep.equal(said);
        expectToldApart();
      });
    }

    it('are announced under the id and the place that they may have been received under', async () => {
      await storeAsEarlier(['one', 'two', 'three']);
      await deliver(1);
      const [, attempted] = sent;
      await mineAgain('b', ['one', 'two', 'three']);
      await deliver();
      const [, again, third] = deliveries;
      expect([again?.id, again?.data.logIndex]).to.deep.equal([attempted?.id, attempted?.data.logIndex]);
      expect(again && dedupeKeyOf(again)).to.equal(attempted && dedupeKeyOf(attempted));
      // The place of the third is that of the first in its block, which was delivered.
      expect(third?.data.logIndex).to.equal(FIRST_IN_BLOCK);
      expectToldApart();
    });

    it('are not announced again under the id of an attempt before a reorganisation that an earlier version saw', async () => {
      // It gave the event another id in each block, and left the one that was attempted in vain.
      await store('a', ['one'], () => 5);
      await deliver(0);
      await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
      const { db } = outbox.database;
      const attempted = await db.selectFrom('orphans').selectAll().executeTakeFirstOrThrow();
      await db.deleteFrom('orphans').execute();
      await store('b', ['one'], () => 8);
      await db.insertInto('orphans').values(attempted).execute();
      await deliver();
      expect(placesOf(deliveries)).to.deep.equal([8]);

      await rewindFeed(outbox.database, outbox.feed, { number: 1, hash: hashOf(1) }, outbox.now);
      await store('c', ['one'], () => 5);
      await deliver();
      expect(placesOf(deliveries)).to.deep.equal([8]);
    });

    for (const already of [0, 1, 2, 3]) {
      it(`are told apart when they say the same and ${already} of 4 were delivered`, async () => {
        const said = ['same', 'same', 'same', 'same'];
        await storeAsEarlier(said);
        await deliver(already);
        await mineAgain('b', said);
        await deliver();
        expect(saidBy(deliveries)).to.deep.equal(said);
        expectToldApart();
      });
    }
  });
}
