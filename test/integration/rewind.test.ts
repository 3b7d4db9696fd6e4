import { expect } from 'chai';
import { sql } from 'kysely';
import type { CloudEvent } from '../../service/events/cloud-event';
import { listOrphans } from '../../service/outbox/rewind-feed';
import { outboxFiguresOf } from '../../service/outbox/outbox-figures';
import type { RegistryEvent } from '../../service/registry/registry-event';
import {
  blocksOf,
  dead,
  delivered,
  emptyOutbox,
  failed,
  type ClaimedHead,
} from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, hashOf, SAMPLE_FEED } from '../helpers/database/sample-feed';

describeOnEngines('rewinding a feed', (on, engine) => {
  const outbox = emptyOutbox(on);
  const { claim, deliverAll, rewind, rewound: rewoundTo, settle, store } = outbox;

  it('withdraws undelivered events, keeps older ones, and delivers those of the new branch', async () => {
    await store(3, [eventIn(1, 7n), eventIn(2, 7n), eventIn(3, 7n), eventIn(3, 8n)]);
    expect(await rewind(1)).to.deep.equal({ withdrawn: 3, orphaned: [] });
    expect(blocksOf(await deliverAll())).to.deep.equal([1]);
    const again = { ...eventIn(2, 7n), blockNumber: 3, blockHash: hashOf(3, 'b'), logIndex: 9 };
    expect(await store(3, [eventIn(2, 8n, {}, 'b'), again], 'b')).to.equal(2);
    expect(blocksOf(await deliverAll()).sort(), 'one was mined again').to.deep.equal([2, 3]);
  });

  it('records a delivered event as an orphan, and does not repeat it when it is mined again', async () => {
    const [moved, gone] = [eventIn(2, 7n), eventIn(2, 8n)];
    await store(2, [moved, gone]);
    const [first] = await deliverAll();
    const rewound = await rewoundTo(1);
    expect(rewound.withdrawn).to.equal(0);
    expect(rewound.orphaned.map(({ outcome }) => outcome)).to.deep.equal(['delivered', 'delivered']);
    expect((await outboxFiguresOf(outbox.database.db, [SAMPLE_FEED]))[0]).to.include({ orphaned: 2 });
    await store(3, [{ ...moved, blockNumber: 3, blockHash: hashOf(3, 'b'), logIndex: 5 }], 'b');
    expect(await deliverAll()).to.deep.equal([]);
    expect((await outboxFiguresOf(outbox.database.db, [SAMPLE_FEED]))[0]).to.include({ orphaned: 1 });
    const orphans = await listOrphans(outbox.database.db, [SAMPLE_FEED]);
    expect(orphans.map(({ minedAgainIn }) => minedAgainIn)).to.have.members([3, null]);
    expect(orphans.map(({ eventId }) => eventId)).to.include(first?.eventId);
    // It can be orphaned again.
    expect((await rewoundTo(2)).orphaned).to.have.length(1);
    await store(4, [{ ...moved, blockNumber: 4, blockHash: hashOf(4, 'c') }], 'c');
    const all = await listOrphans(outbox.database.db, [SAMPLE_FEED]);
    expect(all.map(({ minedAgainIn }) => minedAgainIn)).to.have.members([3, 4, null]);
  });

  it('records a delivered event as an orphan again when its branch returns and goes for good', async () => {
    const onA = eventIn(2, 7n);
    const onB = { ...onA, blockHash: hashOf(2, 'b') };
    await store(2, [onA]);
    await deliverAll();
    for (const [event, branch] of [
      [onB, 'b'],
      [onA, 'a'],
    ] as const) {
      await rewind(1);
      await store(2, [event], branch);
    }
    expect(await deliverAll()).to.deep.equal([]);
    outbox.now += 1;
    expect((await rewoundTo(1)).orphaned).to.have.length(1);
    const orphans = await listOrphans(outbox.database.db, [SAMPLE_FEED]);
    const ofA = orphans.find(({ blockHash }) => blockHash === onA.blockHash);
    expect(ofA).to.include({ outcome: 'delivered', minedAgainIn: null, orphanedAt: outbox.now });
    expect((await outboxFiguresOf(outbox.database.db, [SAMPLE_FEED]))[0]?.orphaned).to.equal(1);
  });

  it('gives another log at a known position a new id, and an attempted event its old id', async () => {
    const [one, two, three] = [eventIn(2, 7n), eventIn(2, 8n), eventIn(2, 9n)];
    await store(2, [one, two, three]);
    const ids = new Map<string, string>();
    for (const head of await claim()) {
      ids.set(head.tokenId, head.eventId);
      await settle((head.tokenId === '9' ? delivered : failed)(head, outbox.now));
    }
    await rewind(1);
    const other = { type: 'shred' as const, payload: { remark: '0x' } };
    const again = [
      { ...one, ...other },
      { ...two, logIndex: 5 },
      { ...three, ...other },
    ];
    await store(
      2,
      again.map((event) => ({ ...event, blockHash: hashOf(2, 'b') })),
      'b',
    );
    const deliveries = await deliverAll();
    expect(deliveries.map(({ tokenId }) => tokenId)).to.have.members(['7', '8', '9']);
    for (const { tokenId, eventId, type, body } of deliveries) {
      expect(eventId === ids.get(tokenId), tokenId).to.equal(tokenId === '8');
      expect(type.endsWith('.shred'), tokenId).to.equal(tokenId !== '8');
      expect((JSON.parse(body) as CloudEvent).data.logIndex, 'as it was sent').to.equal(Number(tokenId));
    }
  });

  it('separates an attempted event from a log that took its position, by id and by pair', async () => {
    const logsOf = (branch: string, said: readonly string[]): RegistryEvent[] =>
      said.map((remark, logIndex) => eventIn(2, 7n, { payload: { remark }, logIndex }, branch));
    await store(2, logsOf('a', ['one', 'two']));
    const [one] = (await claim()) as [ClaimedHead];
    await settle(delivered(one, outbox.now));
    const [two] = (await claim()) as [ClaimedHead];
    await settle(failed(two, outbox.now, outbox.now));
    await rewind(1);
    await store(2, logsOf('b', ['one', 'between', 'two']), 'b');
    const deliveries = await deliverAll();
    const places = deliveries.map(({ body }) => (JSON.parse(body) as CloudEvent).data.logIndex);
    expect(places).to.deep.equal([1, 2]);
    expect(deliveries[0]?.eventId).to.not.be.oneOf([one.eventId, two.eventId]);
    expect(deliveries[1]?.eventId).to.equal(two.eventId);
  });

  it('delivers the second of two equal logs of which the first was delivered', async () => {
    const [one, two] = [eventIn(2, 7n), eventIn(2, 7n, { logIndex: 8 })];
    await store(2, [one, two]);
    const [head] = (await claim()) as [ClaimedHead];
    await settle(delivered(head, outbox.now));
    expect(await rewind(1)).to.include({ withdrawn: 1 });
    const inB = { blockNumber: 3, blockHash: hashOf(3, 'b') };
    const again = [one, two].map((event) => ({ ...event, ...inB, logIndex: event.logIndex + 10 }));
    expect(await store(3, again, 'b')).to.equal(1);
    expect(await deliverAll()).to.have.length(1);
  });

  it('recognises the one of two equal logs that is mined again by its position', async () => {
    const [one, two] = [eventIn(2, 7n), eventIn(2, 7n, { logIndex: 8 })];
    await store(2, [one, two]);
    const [, second] = await deliverAll();
    await rewind(1);
    await store(3, [{ ...two, blockNumber: 3, blockHash: hashOf(3, 'b') }], 'b');
    const orphans = await listOrphans(outbox.database.db, [SAMPLE_FEED]);
    const again = orphans.filter(({ minedAgainIn }) => minedAgainIn !== null);
    expect(again.map(({ eventId }) => eventId)).to.deep.equal([second?.eventId]);
  });

  it('waits for a delivery under way, and decides by its outcome', async () => {
    await store(2, [eventIn(1, 7n), eventIn(2, 8n), eventIn(2, 9n)]);
    const heads = await claim();
    expect(await rewind(1)).to.equal('in flight');
    const ofToken = (token: string): ClaimedHead =>
      heads.find(({ tokenId }) => tokenId === token) as ClaimedHead;
    await settle(delivered(ofToken('8'), outbox.now));
    expect(await rewind(1)).to.equal('in flight');
    await settle(failed(ofToken('9'), outbox.now, outbox.now + 1));
    const rewound = await rewoundTo(1);
    expect(rewound.withdrawn).to.equal(1);
    expect(rewound.orphaned.map(({ tokenId, outcome }) => [tokenId, outcome])).to.deep.equal([
      ['8', 'delivered'],
      ['9', 'attempted'],
    ]);
    // The delivery of token 7 was not affected.
    expect(await settle(delivered(ofToken('7'), outbox.now))).to.deep.equal([]);
  });

  it('withdraws dead letters, and deliveries that were to be repeated', async () => {
    await store(2, [eventIn(1, 6n), eventIn(2, 7n), eventIn(2, 8n)]);
    const heads = await claim();
    for (const head of heads) await settle((head.tokenId === '8' ? dead : delivered)(head, outbox.now));
    await outbox.redeliver({ fromBlock: 1 });
    const rewound = await rewoundTo(1);
    expect(rewound.orphaned.map(({ tokenId, outcome }) => [tokenId, outcome])).to.deep.equal([
      ['7', 'delivered'],
      ['8', 'attempted'],
    ]);
    expect(await outbox.deadLetters()).to.deep.equal([]);
    const waiting = await outbox.waiting();
    expect(waiting.map(({ tokenId }) => tokenId)).to.deep.equal(['6']);
  });

  it('closes the gap when another event waits behind a withdrawn one', async () => {
    await store(1, [eventIn(1, 7n)]);
    await deliverAll();
    await store(2, [eventIn(2, 7n)]);
    // The event of block 1 is sent again on request, behind that of block 2.
    await outbox.redeliver({ fromBlock: 1 });
    expect(await rewind(1)).to.include({ withdrawn: 1 });
    await store(2, [eventIn(2, 7n, { logIndex: 3 }, 'b')], 'b');
    expect(blocksOf(await deliverAll())).to.deep.equal([1, 2]);
  });

  // The code is the same on PostgreSQL, whose statements may have twice as many parameters.
  if (engine !== 'SQLite') return;

  /** More than a statement may have parameters. */
  const MANY = 33_000;
  const numbers = sql`with recursive numbers (i) as
    (select 1 union all select i + 1 from numbers where i < ${sql.lit(MANY)})`;

  it('goes back a few blocks although a token has tens of thousands of waiting events', async () => {
    const { db } = outbox.database;
    await store(1, [eventIn(1, 7n)]);
    await sql`insert into deliveries (channel, token, position, event)
      ${numbers} select channel, token, position + i, event from numbers cross join deliveries`.execute(db);
    await db
      .updateTable('queues')
      .set((eb) => ({ tail: eb('tail', '+', MANY) }))
      .execute();
    await store(3, [eventIn(2, 7n), eventIn(3, 7n)]);
    expect(await rewind(1)).to.deep.equal({ withdrawn: 2, orphaned: [] });
    const [stream] = await outbox.waiting();
    expect(stream).to.include({ tokenId: '7', waiting: MANY + 1 });
  });

  it('recognises a delivered event among tens of thousands of others that were orphaned', async () => {
    const event = eventIn(2, 7n);
    await store(2, [event]);
    const [first] = (await deliverAll()) as [ClaimedHead];
    await rewind(1);
    const { db } = outbox.database;
    await sql`insert into events (feed, token, event_id, type, block_number, block_hash, log_index, body,
        recorded_at, orphaned_at)
      ${numbers}
      select feed, token, unhex(printf('%08x', i) || substr(hex(event_id), 9)), type, block_number,
        block_hash, log_index, replace(body, ${event.transactionHash}, '0x' || i), recorded_at, orphaned_at
      from numbers cross join events`.execute(db);
    await sql`insert into attempts (event, channel, attempt, attempted_at, milliseconds)
      select id, ${outbox.channel}, 1, 1, 1 from events where id <> ${first.event}`.execute(db);
    await store(2, [{ ...event, blockHash: hashOf(2, 'b') }, eventIn(2, 8n, {}, 'b')], 'b');
    expect((await deliverAll()).map(({ tokenId }) => tokenId)).to.deep.equal(['8']);
  });
});
