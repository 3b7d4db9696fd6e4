import { expect } from 'chai';
import { ServiceError } from '../../service/base/errors';
import type { Database } from '../../service/database/database';
import { channelsOf } from '../../service/outbox/channels';
import { claimQueues } from '../../service/outbox/claim-queues';
import type { CloudEvent } from '../../service/events/cloud-event';
import { openFeed, setHeld } from '../../service/outbox/feeds';
import { deliveriesOfEvent } from '../../service/outbox/deliveries';
import { headsOfQueues, storedLetters } from '../helpers/database/stored-queues';
import { purgedUpTo } from '../../service/outbox/purge-events';
import { recordRange } from '../../service/outbox/record-range';
import { listOrphans, rewindFeed } from '../../service/outbox/rewind-feed';
import { takeTurn } from '../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { EARLIER, earlierOutbox, type EarlierFeed } from '../helpers/database/earlier-outbox';
import { attempt, LEASE_MS, tokenIn } from '../helpers/database/empty-outbox';
import { ENGINES, newState, openState, type State } from '../helpers/database/engines';
import { eventIn, hashOf, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const NOW = 1_000_000;
const MINE: EarlierFeed = { feed: SAMPLE_FEED, registry: SAMPLE_REGISTRY };
const OTHER: EarlierFeed = {
  feed: `80002:0x${'6c'.repeat(20)}:fedcba9876543210`,
  registry: { chainKey: 'amoy', chainId: 80002, registryAddress: `0x${'6c'.repeat(20)}` },
};

/** Token `token` has an event in each of the blocks. */
function eventsOf(token: bigint, ...blocks: number[]): RegistryEvent[] {
  return blocks.map((block) => eventIn(block, token));
}

/** An outbox of the version before subscriptions, with a queue in each state. Returns their events. */
async function fill(state: State) {
  const outbox = await earlierOutbox(state);
  const { db, addQueue, addAttempts } = outbox;
  await outbox.addFeed(SAMPLE_FEED, { next_block: 10, purged_up_to: 1 });
  await outbox.addFeed(OTHER.feed, { next_block: 7, opened_at: 2 });
  const empty = { next_attempt_at: null };
  const due = { next_attempt_at: EARLIER };
  const of = (feed: string, { id }: { id: string } = { id: '' }) => ({ feed, event_id: id });

  const delivered = await addQueue(MINE, eventsOf(1n, 2, 3), { head: 3, ...empty });
  await addAttempts(SAMPLE_FEED, delivered[0]?.id ?? '', 2, true);
  await addAttempts(SAMPLE_FEED, delivered[1]?.id ?? '', 0, true);
  const waiting = await addQueue(MINE, eventsOf(2n, 2, 3, 4), due);
  const backingOff = await addQueue(MINE, eventsOf(3n, 2, 3), {
    attempts: 2,
    first_attempted_at: EARLIER,
    next_attempt_at: NOW + 9_000,
  });
  await addAttempts(SAMPLE_FEED, backingOff[0]?.id ?? '', 2, false);
  const leased = await addQueue(MINE, eventsOf(4n, 5, 6), {
    attempts: 1,
    first_attempted_at: EARLIER,
    next_attempt_at: NOW + 20_000,
    lease: 'of a process that died',
  });
  const dead = await addQueue(MINE, eventsOf(5n, 2, 3, 4), { head: 3, ...due });
  await addAttempts(SAMPLE_FEED, dead[0]?.id ?? '', 3, false);
  await addAttempts(SAMPLE_FEED, dead[1]?.id ?? '', 0, true);
  const letter = { died_at: EARLIER, attempts: 3, status: 500, error: 'answered 500' };
  await db
    .insertInto('dead_letters')
    .values({ ...of(SAMPLE_FEED, dead[0]), ...letter })
    .execute();

  const orphanOf = (event: CloudEvent | undefined, block: number, outcome: string) => ({
    ...of(SAMPLE_FEED, event),
    block_number: block,
    block_hash: hashOf(block),
    outcome,
    body: JSON.stringify(event),
    orphaned_at: EARLIER,
    mined_again_in: null,
  });
  const orphaned = await addQueue(MINE, eventsOf(6n, 8), { head: 2, ...empty });
  await addAttempts(SAMPLE_FEED, orphaned[0]?.id ?? '', 0, true);
  await db
    .updateTable('events')
    .set({ orphaned_at: EARLIER })
    .where('event_id', '=', orphaned[0]?.id ?? '')
    .execute();
  await db
    .insertInto('orphans')
    .values(orphanOf(orphaned[0], 8, 'delivered'))
    .execute();
  const attempted = await addQueue(MINE, eventsOf(7n, 8), { ...empty });
  await addAttempts(SAMPLE_FEED, attempted[0]?.id ?? '', 2, false);
  for (const table of ['events', 'deliveries'] as const)
    await db
      .deleteFrom(table)
      .where('event_id', '=', attempted[0]?.id ?? '')
      .execute();
  await db.updateTable('streams').set({ tail: 0 }).where('stream', '=', `${SAMPLE_FEED}/7`).execute();
  await db
    .insertInto('orphans')
    .values([
      orphanOf(attempted[0], 8, 'attempted'),
      // An earlier branch had it as well.
      { ...orphanOf(attempted[0], 7, 'attempted'), orphaned_at: EARLIER - 1 },
    ])
    .execute();
  const twice = await addQueue(MINE, eventsOf(9n, 6), { head: 2, ...empty });
  await addAttempts(SAMPLE_FEED, twice[0]?.id ?? '', 1, true);
  await db
    .insertInto('orphans')
    .values({ ...orphanOf(twice[0], 5, 'attempted'), mined_again_in: 6 })
    .execute();

  const paused = [2, 6].map((block) =>
    eventIn(block, 0n, { type: 'registry_paused', tokenId: undefined, logIndex: 1 }),
  );
  const ofRegistry = await addQueue(MINE, paused, { head: 2, ...due });
  await addAttempts(SAMPLE_FEED, ofRegistry[0]?.id ?? '', 0, true);
  const ofToken0 = await addQueue(MINE, eventsOf(0n, 3, 7), { head: 2, ...due });
  await addAttempts(SAMPLE_FEED, ofToken0[0]?.id ?? '', 1, true);
  const purged = { stream: `${SAMPLE_FEED}/8`, feed: SAMPLE_FEED, head: 6, tail: 5, attempts: 0 };
  await db
    .insertInto('streams')
    .values({ ...purged, first_attempted_at: null, lease: null, ...empty })
    .execute();
  const ofOther = await addQueue(OTHER, eventsOf(1n, 2, 3), due);
  await outbox.close();
  const all = { delivered, waiting, backingOff, leased, dead, orphaned, attempted, twice };
  return { ...all, ofRegistry, ofToken0, ofOther };
}

for (const engine of ENGINES)
  describe(`an outbox from before subscriptions, on ${engine}`, () => {
    let state: State;
    let database: Database;
    let now = NOW;

    before(async function () {
      const opened = await newState(engine);
      if (opened === undefined) return this.skip();
      state = opened;
    });

    async function channelOf(feed: string): Promise<number> {
      const [channel, ...more] = await channelsOf(database.db, feed);
      expect(more).to.deep.equal([]);
      expect(channel).to.include({ subscription: 'default', definition: null, state: 'active' });
      return channel?.channel ?? 0;
    }
    /** Delivers all that falls due within a minute. Returns the bodies, by token in the order of delivery. */
    async function deliverAll(feed: string): Promise<Record<string, string[]>> {
      const channel = await channelOf(feed);
      const bodies: Record<string, string[]> = {};
      now += 60_000;
      for (let turn = 0; ; turn++) {
        const due = { channel, lease: `${feed} ${now} ${turn}`, limit: 100, perQueue: 32, now };
        const queues = await claimQueues(database.db, { ...due, leaseMs: LEASE_MS });
        if (queues.length === 0) return bodies;
        for (const delivery of queues.flatMap(({ deliveries }) => deliveries))
          (bodies[tokenIn(delivery)] ??= []).push(delivery.body);
        const settlements = queues.map((queue) => ({
          queue,
          delivered: queue.deliveries.map((delivery) => ({ delivery, attempt: attempt(now) })),
        }));
        const nothing = { channel, lease: 'none', limit: 0, perQueue: 0, now, leaseMs: 0 };
        const { lost } = await takeTurn(database, { settlements, claim: nothing, mayBeDue: true });
        expect(lost).to.deep.equal([]);
      }
    }
    const bodiesOf = (...events: (CloudEvent | undefined)[]): string[] =>
      events.map((event) => JSON.stringify(event));

    it('is migrated with its queues, attempts, dead letters and orphans, or not changed at all', async () => {
      const stored = await fill(state);
      const spoil = async (body: string): Promise<void> => {
        const { db, close } = await earlierOutbox(state);
        const orphans = db.updateTable('orphans').set({ body }).where('outcome', '=', 'attempted');
        await orphans.where('block_number', '=', 8).execute();
        await close();
      };
      await spoil('not JSON');
      const failure = await openState(state).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(ServiceError).and.include({ code: 'MIGRATION_FAILED' });
      await spoil(JSON.stringify(stored.attempted[0]));
      database = await openState(state);

      const waiting = await headsOfQueues(database.db, [SAMPLE_FEED, OTHER.feed]);
      const brief = waiting.map(({ registry, eventId, waiting, attempts, nextAttemptAt }) =>
        [registry.split(':')[0], eventId, waiting, attempts, nextAttemptAt].join(' '),
      );
      expect(brief).to.have.members([
        `31337 ${stored.waiting[0]?.id} 3 0 ${EARLIER}`,
        `31337 ${stored.backingOff[0]?.id} 2 2 ${NOW + 9_000}`,
        `31337 ${stored.leased[0]?.id} 2 1 ${NOW + 20_000}`,
        `31337 ${stored.dead[2]?.id} 1 0 ${EARLIER}`,
        `31337 ${stored.ofToken0[1]?.id} 1 0 ${EARLIER}`,
        `31337 ${stored.ofRegistry[1]?.id} 1 0 ${EARLIER}`,
        `80002 ${stored.ofOther[0]?.id} 2 0 ${EARLIER}`,
      ]);
      // The retries of an event end three days after its first attempt.
      const attempted = database.db
        .selectFrom('queues')
        .select('first_attempted_at')
        .where('attempts', '>', 0);
      const since = (await attempted.execute()).map(({ first_attempted_at }) => first_attempted_at);
      expect(since).to.deep.equal([EARLIER, EARLIER]);

      const told = async (event: CloudEvent | undefined): Promise<unknown> => {
        const [found] = await deliveriesOfEvent(database.db, event?.id ?? '');
        const [history] = found?.deliveries ?? [];
        expect(found?.body).to.equal(JSON.stringify(event));
        return [history?.state, ...(history?.attempts ?? []).map(({ status }) => status)];
      };
      expect(await told(stored.delivered[0])).to.deep.equal(['delivered', 500, 500, 200]);
      expect(await told(stored.waiting[2])).to.deep.equal(['waiting']);
      expect(await told(stored.backingOff[0])).to.deep.equal(['failed', 500, 500]);
      expect(await told(stored.dead[0])).to.deep.equal(['dead', 500, 500, 500]);
      expect(await told(stored.orphaned[0])).to.deep.equal(['orphaned', 200]);
      expect(await told(stored.attempted[0])).to.deep.equal(['orphaned', 500, 500]);
      expect(await told(stored.twice[0])).to.deep.equal(['delivered', 500, 200]);
      expect(await told(stored.ofRegistry[0])).to.deep.equal(['delivered', 200]);
      const [letter, ...letters] = await storedLetters(database.db, [SAMPLE_FEED, OTHER.feed]);
      const ofDead = { eventId: stored.dead[0]?.id, attempts: 3, diedAt: EARLIER };
      expect(letters).to.deep.equal([]);
      expect(letter).to.include(ofDead);
      const orphans = await listOrphans(database.db, [SAMPLE_FEED]);
      expect(orphans.map(({ eventId, outcome }) => `${eventId} ${outcome}`)).to.have.members([
        `${stored.orphaned[0]?.id} delivered`,
        ...Array<string>(2).fill(`${stored.attempted[0]?.id} attempted`),
        `${stored.twice[0]?.id} attempted`,
      ]);
      expect(await purgedUpTo(database.db, SAMPLE_FEED)).to.equal(1);
      expect(await purgedUpTo(database.db, OTHER.feed)).to.equal(undefined);

      const open = await openFeed(database.db, SAMPLE_FEED, 1, now);
      const kept = [
        { number: 0, hash: '0x0a' },
        { number: 9, hash: '0x9a' },
      ];
      expect(open).to.deep.include({ epoch: 4, cursor: { nextBlock: 10, kept } });
      // The process that died may still be sending.
      const ancestor = { number: 4, hash: hashOf(4) };
      expect(await rewindFeed(database, open, ancestor, now)).to.equal('in flight');
      await setHeld(database.db, open, 0);

      expect(await deliverAll(SAMPLE_FEED)).to.deep.equal({
        '2': bodiesOf(...stored.waiting),
        '3': bodiesOf(...stored.backingOff),
        '4': bodiesOf(...stored.leased),
        '5': bodiesOf(stored.dead[2]),
        '0': bodiesOf(stored.ofToken0[1]),
        '': bodiesOf(stored.ofRegistry[1]),
      });
      expect(await deliverAll(OTHER.feed)).to.deep.equal({ '1': bodiesOf(...stored.ofOther) });

      // Orphans are recognised when their transactions are mined again, and an emptied queue goes on.
      const inBlock = { blockNumber: 10, blockHash: hashOf(10) };
      const again = [...eventsOf(6n, 8), ...eventsOf(7n, 8)].map((event) => ({ ...event, ...inBlock }));
      const events = [...again, ...eventsOf(8n, 10)];
      const range = { events, blocks: [{ number: 10, hash: hashOf(10) }], oldestKept: 0, nextBlock: 11 };
      expect(await recordRange(database, open, SAMPLE_REGISTRY, range, now)).to.include({ added: 2 });
      const sent = await deliverAll(SAMPLE_FEED);
      expect(sent).to.have.keys('7', '8');
      const known = JSON.parse(sent['7']?.[0] ?? '') as CloudEvent;
      expect([known.id, known.data.blockNumber]).to.deep.equal([stored.attempted[0]?.id, 10]);
    });
  });
