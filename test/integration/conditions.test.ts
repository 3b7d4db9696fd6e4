import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sql } from 'kysely';
import pino from 'pino';
import type { OperationalEvent } from '../../client/events';
import { registryName } from '../../service/base/registry-name';
import { systemTime, newDeferred } from '../../service/base/time';
import { StorageTrial, watchConditions } from '../../service/composition/watch-conditions';
import type { Config } from '../../service/config/config';
import { OPERATIONS, type Condition } from '../../service/events/conditions';
import { mintingRightOf } from '../../service/journal/issuance';
import { channelsOf } from '../../service/outbox/channels';
import {
  conditionsOfChannels,
  distinctConditions,
  noteSight,
  readConditions,
  type SeenCondition,
  type Sight,
} from '../../service/outbox/conditions';
import { listDeliveries, listEvents, UNDELIVERED_STATES } from '../../service/outbox/deliveries';
import { findAllFeeds, findFeeds } from '../../service/outbox/feeds';
import { purgeEvents } from '../../service/outbox/purge-events';
import { redeliver } from '../../service/outbox/enqueue-stored';
import { storedLetters } from '../helpers/database/stored-queues';
import {
  addSubscription,
  removeSubscription,
  replaceSubscription,
  subscriptionOf,
} from '../../service/subscriptions/stored-subscriptions';
import { countSubscriptions } from '../../service/subscriptions/stored-subscriptions';
import { dead, emptyOutbox, failed, type ClaimedHead } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';
import { schemaProblem } from '../helpers/receiver/schema-problems';
import { subscriptionWith } from '../helpers/subscription-body';

const PREFIX = 'com.service.etr.operations.';
const SUBSCRIPTION_TYPES = ['failing', 'gone', 'paused', 'recovered'].map(
  (one) => `${PREFIX}subscription_${one}`,
);
const NODE_TYPES = ['away', 'differing', 'back'].map((one) => `${PREFIX}node_${one}`);
const TYPES = [...SUBSCRIPTION_TYPES, ...NODE_TYPES, `${PREFIX}dead_letter`];
const OBSERVER = `31337:${SAMPLE_REGISTRY.registryAddress}`;

const ofNode = (what: 'node_away' | 'node_differing', since = 1): Condition => ({
  what,
  subject: 'node/http://a',
  since,
  detail: { node: 'http://a', reason: 'no answer', difference: 'another head' },
});

describeOnEngines('conditions', (on, engine) => {
  const outbox = emptyOutbox(on);
  /** The name of a subscription to all operational types. */
  let told: string;

  beforeEach(async () => {
    told = await subscribe({ types: TYPES });
  });

  async function subscribe(members: object = {}): Promise<string> {
    const id = randomUUID();
    await addSubscription(outbox.database, { ...subscriptionWith(members), id }, undefined, outbox.now);
    return id;
  }
  async function channelOf(subscription: string, feed = OPERATIONS): Promise<number> {
    const [channel] = await channelsOf(outbox.database.db, feed, subscription);
    if (channel === undefined) throw new Error('the subscription has no channel');
    return channel.channel;
  }
  const eventsIn = (heads: readonly ClaimedHead[]): OperationalEvent[] =>
    heads.map(({ body }) => JSON.parse(body) as OperationalEvent);
  const briefly = ({ type, subject }: OperationalEvent): string => `${type.slice(PREFIX.length)} ${subject}`;
  /** Delivers the operational events of a subscription; returns them. */
  const arrived = async (subscription = told): Promise<string[]> =>
    eventsIn(await outbox.deliverAll(await channelOf(subscription))).map(briefly);
  const stored = () => readConditions(outbox.database.db);
  const note = async (sight: Sight, observer = OBSERVER, seen?: SeenCondition[]) =>
    noteSight(outbox.database, observer, { sight, seen: seen ?? (await stored()), now: outbox.now });
  const see = (...conditions: Condition[]) => note({ conditions });
  const kinds = async (): Promise<string[]> => distinctConditions(await stored()).map(({ what }) => what);
  /** The sight of the sample feed's reader: its subscriptions. */
  const ofChannels = async (feed = SAMPLE_FEED, hasWebhook = true): Promise<Condition[]> => {
    const { now } = outbox;
    const limits = { slowBefore: now - 60_000, failingBefore: now - 300_000, now };
    const found = await conditionsOfChannels(outbox.database.db, new Map([[feed, hasWebhook]]), limits);
    return found.get(feed) ?? [];
  };
  const gone = (head: ClaimedHead, now: number) => {
    const settled = failed(head, now);
    return { ...settled, ...(settled.failed && { failed: { ...settled.failed, isGone: true } }) };
  };
  /** The first event that is due has this outcome. */
  async function settleFirst(channel: number, outcome: typeof dead): Promise<void> {
    const [head] = (await outbox.claim(1, channel)) as [ClaimedHead];
    await outbox.settle(outcome(head, outbox.now));
  }

  it('are told once when they begin, and once when they end, in the form of their schemas', async () => {
    for (let round = 0; round < 3; round++) await see(ofNode('node_away'));
    expect(await kinds()).to.deep.equal(['node_away']);
    for (let round = 0; round < 3; round++) await see();
    expect(await kinds()).to.deep.equal([]);
    await see(ofNode('node_away', 2));
    const events = eventsIn(await outbox.deliverAll(await channelOf(told)));
    const expected = ['away', 'back', 'away'].map((one) => `node_${one} node/http://a`);
    expect(events.map(briefly)).to.deep.equal(expected);
    for (const event of events) expect(schemaProblem(event)).to.equal(undefined);
    expect(new Set(events.map(({ id }) => id)).size).to.equal(3);
  });

  it('last until the last observer does not see them', async () => {
    await see(ofNode('node_away'));
    await note({ conditions: [ofNode('node_away', 2)] }, 'mint:other');
    await see();
    expect(await kinds()).to.deep.equal(['node_away']);
    await note({ conditions: [] }, 'mint:other');
    expect(await arrived()).to.deep.equal(['node_away node/http://a', 'node_back node/http://a']);
  });

  it('follow on another without an end between them', async () => {
    await see(ofNode('node_away'));
    await see(ofNode('node_differing'));
    await see();
    const suffixes = (await arrived()).map((one) => one.split(' ')[0]);
    expect(suffixes).to.deep.equal(['node_away', 'node_differing', 'node_back']);
  });

  it('stay while it is not known whether they hold, and change their details silently', async () => {
    await see(ofNode('node_away'));
    await note({ conditions: [], unknown: ['node_away'] });
    await see({ ...ofNode('node_away', 2), detail: { node: 'http://a', reason: 'it is behind' } });
    const [{ since, detail } = ofNode('node_away'), ...others] = await stored();
    expect([since, detail.reason, others]).to.deep.equal([1, 'it is behind', []]);
    expect(await arrived()).to.deep.equal(['node_away node/http://a']);
  });

  it('stay when a process looks that stands by: it sees neither the feed nor the issuing', async () => {
    const [chainId, registry] = [31337, SAMPLE_REGISTRY.registryAddress];
    const scope = { chainId, registryAddress: registry, issuer: 'did:web:a' };
    await see(ofNode('node_away'));
    await note({ conditions: [{ ...ofNode('node_away'), subject: 'node/http://b' }] }, mintingRightOf(scope));
    const before = await stored();
    const looked = newDeferred<undefined>();
    const feed = { name: registryName(chainId, registry), chainId, registry, status: { state: 'standby' } };
    const running = { follower: { isReader: async () => false, opened: SAMPLE_FEED } };
    const core = {
      config: { subscriptionFailingAfterMinutes: 5, network: { chainId } } as Config,
      database: outbox.database,
      time: { ...systemTime, now: () => outbox.now },
      logger: pino({ level: 'silent' }),
    };
    let looks = 0;
    const lines = {
      eventDelivery: {
        // The second time is for the registries that are not followed: it looks at nothing later.
        feeds() {
          if (++looks === 2) looked.resolve(undefined);
          return [{ ...feed, running }];
        },
      },
      issuing: { scope, isMinting: () => false },
    };
    const watching = watchConditions(core, lines as never, async () => expect.fail(), new StorageTrial(core));
    await looked.promise;
    await watching.stop();
    expect(await stored()).to.deep.equal(before);
  });

  it('are told once if two processes see them at the same time', async function () {
    if (engine === 'SQLite') return this.skip();
    const seen = await stored();
    const both = [0, 1, 2, 3].map((now) =>
      noteSight(outbox.database, now % 2 ? 'mint:other' : OBSERVER, {
        sight: { conditions: [ofNode('node_away', now)] },
        seen,
        now,
      }),
    );
    await Promise.all(both);
    expect(await arrived()).to.deep.equal(['node_away node/http://a']);
  });

  it('are told only to subscriptions whose types name them', async () => {
    const all = await subscribe();
    const prefix = await subscribe({ filters: [{ prefix: { type: 'com.service.etr.' } }] });
    const back = await subscribe({ types: [`${PREFIX}node_back`] });
    const both = await subscribe({
      types: [`${PREFIX}node_away`, 'com.service.etr.holder_transfer'],
      filters: [{ tokens: ['7'] }],
    });
    await see(ofNode('node_away'));
    await outbox.store(1, [eventIn(1, 7n), eventIn(1, 8n)]);
    await see();
    for (const other of [all, prefix, 'default'])
      expect(await channelsOf(outbox.database.db, OPERATIONS, other), other).to.deep.equal([]);
    expect(await arrived(back)).to.deep.equal(['node_back node/http://a']);
    expect(await arrived(both)).to.deep.equal(['node_away node/http://a']);
    const ofChain = await outbox.deliverAll(await channelOf(both, SAMPLE_FEED));
    expect(ofChain.map(({ tokenId }) => tokenId)).to.deep.equal(['7']);
    expect(await outbox.deliverAll(await channelOf(told, SAMPLE_FEED))).to.deep.equal([]);
  });

  it('are told to a subscription that names them later, and no longer when it does not', async () => {
    const id = await subscribe();
    const change = (members: object) =>
      replaceSubscription(
        outbox.database,
        id,
        (row) => ({ ...subscriptionOf(row, undefined), ...members }),
        undefined,
        (outbox.now += 1),
      );
    await change({ types: [`${PREFIX}node_away`, `${PREFIX}node_back`] });
    await see(ofNode('node_away'));
    await change({ types: ['com.service.etr.minted'] });
    await see();
    expect(await arrived(id)).to.deep.equal(['node_away node/http://a']);
  });

  describe('of subscriptions', () => {
    let name: string;
    let channel: number;

    beforeEach(async () => {
      name = await subscribe();
      channel = await channelOf(name, SAMPLE_FEED);
      await outbox.store(1, [eventIn(1, 7n), eventIn(1, 8n)]);
    });

    const setState = (state: 'active' | 'paused'): Promise<void> => {
      const change = (row: Parameters<typeof subscriptionOf>[0]) => {
        const subscription = subscriptionOf(row, undefined);
        return { ...subscription, config: { ...subscription.config, state } };
      };
      return replaceSubscription(outbox.database, name, change, undefined, outbox.now);
    };

    it('are slow, then failing, until a delivery succeeds', async () => {
      await settleFirst(channel, failed);
      const since = outbox.now;
      const steps = [
        [0, []],
        [60_000, ['subscription_slow']],
        [300_000, ['subscription_failing']],
      ] as const;
      for (const [ms, expected] of steps) {
        outbox.now = since + ms;
        const conditions = await ofChannels();
        expect(conditions.map(({ what }) => what)).to.deep.equal(expected);
        await see(...conditions);
      }
      await outbox.deliverAll(channel);
      await see(...(await ofChannels()));
      expect(await arrived()).to.deep.equal([
        `subscription_failing subscription/${name}`,
        `subscription_recovered subscription/${name}`,
      ]);
    });

    it('are paused after they failed without a recovery, which is told when they are resumed', async () => {
      await settleFirst(channel, failed);
      outbox.now += 300_000;
      await see(...(await ofChannels()));
      await setState('paused');
      await see(...(await ofChannels()));
      expect(await arrived()).to.deep.equal([
        `subscription_failing subscription/${name}`,
        `subscription_paused subscription/${name}`,
      ]);
      await setState('active');
      await see(...(await ofChannels()));
      expect(await arrived()).to.deep.equal([`subscription_recovered subscription/${name}`]);
    });

    it('are gone in the transaction in which their sink answers 410, until they are resumed', async () => {
      const before = await stored();
      await settleFirst(channel, gone);
      // A sight from before the answer, with something else to tell of.
      await note({ conditions: [ofNode('node_away')] }, OBSERVER, before);
      expect(await kinds()).to.deep.equal(['subscription_gone']);
      expect(await arrived()).to.deep.equal([`subscription_gone subscription/${name}`]);
      // `default`, which the settings have, counts as well.
      const withDefault = { registries: [{ webhook: {} }] } as unknown as Config;
      const ofDefault = {
        ...ofNode('node_away'),
        what: 'subscription_gone',
        subject: 'subscription/default',
      };
      for (const [conditions, counts] of [
        [[], { active: 2, paused: 0, gone: 1 }],
        [[ofDefault as Condition], { active: 1, paused: 0, gone: 2 }],
      ] as const)
        expect(await countSubscriptions(withDefault, outbox.database.db, conditions)).to.deep.equal(counts);
      await see(...(await ofChannels()));
      expect(await arrived()).to.deep.equal([]);
      await setState('active');
      await see(...(await ofChannels()));
      expect(await arrived()).to.deep.equal([`subscription_recovered subscription/${name}`]);
    });

    it('are not gone while the event that tells of it cannot be stored', async () => {
      const { db } = outbox.database;
      const [head] = (await outbox.claim(1, channel)) as [ClaimedHead];
      for (const table of ['conditions', 'events']) {
        await sql`alter table ${sql.table(table)} rename to hidden`.execute(db);
        expect(await outbox.settle(gone(head, outbox.now)).catch(() => 'failed')).to.equal('failed');
        await sql`alter table hidden rename to ${sql.table(table)}`.execute(db);
        expect(await kinds()).to.deep.equal([]);
        const stored = db.selectFrom('channels').select('state').where('id', '=', channel);
        expect(await stored.executeTakeFirst()).to.deep.equal({ state: 'active' });
      }
      await outbox.settle(gone(head, outbox.now));
      expect(await arrived()).to.deep.equal([`subscription_gone subscription/${name}`]);
    });

    it('have dead letters, each of which is told, until they are sent again', async () => {
      for (let letters = 0; letters < 2; letters++) await settleFirst(channel, dead);
      const events = eventsIn(await outbox.deliverAll(await channelOf(told)));
      const one = `dead_letter subscription/${name}`;
      expect(events.map(briefly), 'one event for each').to.deep.equal([one, one]);
      const letters = await storedLetters(outbox.database.db, [SAMPLE_FEED]);
      expect(events.map(({ data }) => 'event' in data && data.event)).to.have.members(
        letters.map(({ eventId }) => eventId),
      );
      for (const event of events) expect(schemaProblem(event)).to.equal(undefined);
      await see(...(await ofChannels()));
      expect(await kinds()).to.deep.equal(['dead_letters']);
      await outbox.redeliver({ dead: true }, channel);
      await see(...(await ofChannels()));
      expect(await kinds()).to.deep.equal([]);
      expect(await arrived()).to.deep.equal([]);
    });

    it('are forgotten with the subscription', async () => {
      await settleFirst(channel, gone);
      await removeSubscription(outbox.database, name, true);
      await see(...(await ofChannels()));
      expect(await kinds()).to.deep.equal([]);
      expect(await arrived()).to.deep.equal([`subscription_gone subscription/${name}`]);
    });

    it('name the subscription default only if the settings have a webhook', async () => {
      await settleFirst(outbox.channel, gone);
      expect((await ofChannels()).map(({ subject }) => subject)).to.deep.equal(['subscription/default']);
      expect(await ofChannels(SAMPLE_FEED, false)).to.deep.equal([]);
      for (const one of [name, told]) await removeSubscription(outbox.database, one, true);
      const [{ what } = { what: '' }] = await ofChannels(SAMPLE_FEED, false);
      expect(what).to.equal('feed_unreceived');
    });

    it('are not told of the sink that takes operational events', async () => {
      const other = await subscribe({ types: TYPES });
      await see(ofNode('node_away'));
      const own = await channelOf(told);
      await settleFirst(own, dead);
      await see();
      await settleFirst(own, gone);
      await note({ conditions: await ofChannels(OPERATIONS) }, OPERATIONS);
      expect(await kinds()).to.have.members(['dead_letters', 'subscription_gone']);
      await outbox.database.db.updateTable('channels').set({ state: 'active' }).execute();
      await note({ conditions: [] }, OPERATIONS);
      const ofNodes = ['node_away node/http://a', 'node_back node/http://a'];
      expect(await arrived(other)).to.deep.equal(ofNodes);
      expect(await arrived(told)).to.deep.equal(ofNodes.slice(1));
    });

    it('are told to others, and not to the sink itself, if it takes events of the chain too', async () => {
      const both = await subscribe({ types: [...TYPES, 'com.service.etr.holder_transfer'] });
      await outbox.store(2, [eventIn(2, 9n)]);
      await settleFirst(await channelOf(both, SAMPLE_FEED), gone);
      expect(await arrived()).to.deep.equal([`subscription_gone subscription/${both}`]);
      const wanted = { subscription: both, states: UNDELIVERED_STATES, limit: 10 };
      const { deliveries } = await listDeliveries(outbox.database.db, wanted);
      expect(deliveries.map(({ event }) => event.registry)).to.deep.equal([OBSERVER]);
    });
  });

  describe('as deliveries', () => {
    beforeEach(() => see(ofNode('node_away')));

    it('are listed, become dead letters, and are sent again', async () => {
      const { db } = outbox.database;
      const wanted = { registry: OPERATIONS, limit: 10 };
      const { deliveries } = await listDeliveries(db, wanted);
      expect(deliveries.map(({ event }) => [event.registry, event.tokenId])).to.deep.equal([
        [OPERATIONS, 'node/http://a'],
      ]);
      expect((await listEvents(db, {})).events).to.have.length(1);
      const channel = await channelOf(told);
      await settleFirst(channel, dead);
      expect(await storedLetters(db, [OPERATIONS])).to.have.length(1);
      const [{ feed = 0 } = {}] = await channelsOf(db, OPERATIONS, told);
      const again = await redeliver(outbox.database, { feed, channel }, { dead: true }, outbox.now);
      expect(again.queued).to.equal(1);
      expect(await arrived()).to.deep.equal(['node_away node/http://a']);
    });

    it('are purged when they are old', async () => {
      const later = outbox.now + 1;
      expect(await purgeEvents(systemTime, outbox.database, OPERATIONS, later)).to.equal(0);
      await arrived();
      expect(await purgeEvents(systemTime, outbox.database, OPERATIONS, outbox.now)).to.equal(0);
      expect(await purgeEvents(systemTime, outbox.database, OPERATIONS, later)).to.equal(1);
      await see();
      expect(await arrived()).to.deep.equal(['node_back node/http://a']);
    });

    it('are purged when they are old, also if nobody subscribes to them any more', async () => {
      const { database } = outbox;
      await removeSubscription(database, told, true);
      expect(await purgeEvents(systemTime, database, OPERATIONS, outbox.now + 1)).to.equal(1);
    });

    it('are of no registry', async () => {
      for (const find of [findFeeds, findAllFeeds])
        expect(await find(outbox.database.db)).to.deep.equal([SAMPLE_FEED]);
    });
  });
});
