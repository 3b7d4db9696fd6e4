import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { dedupeKeyOf } from '../../receiver/store';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { eventIdOf, type CloudEvent } from '../../service/events/cloud-event';
import { bytesOfId } from '../../service/outbox/stored-events';
import { expectedEvents, type ExpectedEvent } from '../helpers/chain/expected-events';
import { eventually } from '../helpers/eventually';
import { whileFollowing, type FollowedRegistry } from '../helpers/processes/followed-registry';
import type { Fork, SignedCall } from '../helpers/chain/forkable-chain';
import { createForkedRegistry, MINTERS, type ForkedRegistry } from '../helpers/chain/forked-registry';

const CONFIRMATIONS = 2;

/** A block of three transactions. */
interface PartlyDelivered {
  /** The chain before that block. */
  fork: Fork;
  nomination: SignedCall;
  mints: readonly [SignedCall, SignedCall];
  fromBlock: number;
}

/**
 * Earlier versions stored the position of a log in its block, where later ones store its position in its
 * transaction, and derived the event's id from it.
 */
describe('a database of an earlier version', () => {
  let forked: ForkedRegistry;

  before(async () => {
    forked = await createForkedRegistry();
  });

  after(() => forked?.stop());

  /** The events of three transactions of one block; some are delivered, one was attempted, others wait. */
  async function partlyDelivered(
    name: string,
    act: (followed: FollowedRegistry, block: PartlyDelivered) => Promise<void>,
  ): Promise<void> {
    const settings = { CONFIRMATIONS: String(CONFIRMATIONS) };
    await whileFollowing(forked.local, { name, settings }, async (followed) => {
      let left = 4;
      followed.answer(() => (left-- > 0 ? 200 : 500));
      const fork = await forked.fork();
      const nomination = await forked.nominate({ first: true });
      const mints = [await forked.mint(), await forked.mint({ minter: MINTERS[1] })] as const;
      const fromBlock = await forked.mine(nomination, ...mints);
      await confirm();
      await eventually('some are delivered, and one was attempted', () => followed.attempted.length > 4);
      await act(followed, { fork, nomination, mints, fromBlock });
    });
  }

  async function confirm(): Promise<void> {
    for (let block = 0; block < CONFIRMATIONS; block++) await forked.mine();
  }

  /**
   * Every event of the chain was accepted once, whether a subscriber compares ids, or the pair and the
   * content. Ids stay unique even if the subscriber kept events that it answered with an error.
   */
  async function expectEachOnce({ accepted, attempted }: FollowedRegistry, fromBlock: number): Promise<void> {
    const { client, registryAddress } = forked.local;
    const expected = await expectedEvents(client, registryAddress, fromBlock);
    expect(accepted.map(briefly)).to.have.members(expected.map(briefly));
    expect(new Set(attempted.map(({ id }) => id)).size).to.equal(expected.length);
    expect(new Set(accepted.map((event) => dedupeKeyOf(event))).size).to.equal(expected.length);
  }

  it('delivers waiting events as they were stored, and numbers new logs within their transactions', () =>
    partlyDelivered('read-on', async (followed, { fromBlock }) => {
      const unconfirmed = [await forked.mint(), await forked.mint({ minter: MINTERS[1] })];
      await forked.mine(...unconfirmed);
      const before = followed.accepted.length;
      let stored: CloudEvent[] = [];
      await followed.restart(async () => {
        stored = await asEarlier(followed, join(forked.local.folder, 'read-on'));
        await confirm();
      });
      followed.answer(200);
      await followed.settled();
      await expectEachOnce(followed, fromBlock);
      const afterwards = followed.accepted.slice(before);
      const isNew = ({ data }: CloudEvent): boolean =>
        unconfirmed.some(({ hash }) => hash === data.transactionHash);
      expect(stored).to.include.deep.members(afterwards.filter((event) => !isNew(event)));
      const positions = afterwards.filter(isNew).map(({ data }) => data.logIndex);
      expect(positions.sort()).to.deep.equal([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }));

  it('delivers every event once after a reorganisation', () =>
    partlyDelivered(
      'reorganised',
      async (followed, { fork, nomination, mints: [first, second], fromBlock }) => {
        await followed.restart(async () => {
          await asEarlier(followed, join(forked.local.folder, 'reorganised'));
          await fork.back(1);
          await forked.mine(second);
          await forked.mine(nomination, first);
          await confirm();
        });
        await eventually('it is noticed', () => followed.logged('chain reorganised')[0]);
        followed.answer(200);
        await followed.settled();
        await expectEachOnce(followed, fromBlock);
      },
    ));
});

function briefly({ type, subject, data }: ExpectedEvent): string {
  return `${type} of ${subject} in ${data.transactionHash}`;
}

/** Rewrites the stored and the received events as earlier versions had them; returns the stored ones. */
async function asEarlier({ attempted, accepted }: FollowedRegistry, dataDir: string): Promise<CloudEvent[]> {
  const database = await openDatabaseBesideService({ dataDir, databaseUrl: undefined });
  const { db } = database;
  const rows = await db.selectFrom('events').select(['id', 'log_index', 'body']).execute();
  const earlier = new Map<string, CloudEvent>();
  // An earlier id can be the present id of another event: random ids keep them unique meanwhile.
  for (const { id } of rows)
    await db
      .updateTable('events')
      .set({ event_id: bytesOfId(randomUUID()) })
      .where('id', '=', id)
      .execute();
  for (const { id, log_index, body } of rows) {
    const event = JSON.parse(body) as CloudEvent;
    const earlierId = eventIdOf(event.data.chainId, event.data.transactionHash, log_index);
    const before = { ...event, id: earlierId, data: { ...event.data, logIndex: log_index } };
    earlier.set(event.id, before);
    await db
      .updateTable('events')
      .set({ event_id: bytesOfId(earlierId), body: JSON.stringify(before) })
      .where('id', '=', id)
      .execute();
  }
  await database.close();
  for (const received of [attempted, accepted])
    received.splice(0, received.length, ...received.map((event) => earlier.get(event.id) ?? event));
  return [...earlier.values()];
}
