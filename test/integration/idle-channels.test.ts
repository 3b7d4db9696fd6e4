import { randomUUID } from 'node:crypto';
import type { KyselyPlugin } from 'kysely';
import pino from 'pino';
import { createLifecycle } from '../../service/base/lifecycle';
import type { Database } from '../../service/database/database';
import { createDeliverers } from '../../service/delivery/deliverers';
import { createDeliverySlots } from '../../service/delivery/delivery-slots';
import { createFeedDelivery, type FeedDelivery } from '../../service/delivery/feed-delivery';
import { addSubscription } from '../../service/subscriptions/stored-subscriptions';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { eventIn, record, SAMPLE_FEED } from '../helpers/database/sample-feed';
import { expect } from 'chai';
import { startRawReceiver, type RawReceiver } from '../helpers/receiver/raw-receiver';
import { webhookTo } from '../helpers/receiver/webhook-to';
import { subscriptionWith } from '../helpers/subscription-body';
import { VirtualTime } from '../helpers/virtual-time';

const SUBSCRIPTIONS = 30;

describeOnEngines('the deliveries of many subscriptions', (on, engine) => {
  // The looks do not depend on the engine.
  if (engine !== 'SQLite') return;
  const outbox = emptyOutbox(on);
  let receiver: RawReceiver;
  let delivery: FeedDelivery;
  let statements = 0;
  /** For each worker, whether its channel was failing when it started. */
  let failing: boolean[];
  let time: VirtualTime;

  beforeEach(async () => {
    receiver = await startRawReceiver();
    time = VirtualTime.ofRequests();
    const { database } = outbox;
    for (let index = 0; index < SUBSCRIPTIONS; index++)
      await addSubscription(database, { ...subscriptionWith(), id: randomUUID() }, undefined, 1);
    const channels = await database.db.selectFrom('channels').select('id').orderBy('id').execute();
    await database.db
      .updateTable('channels')
      .set({ failing_since: 1 })
      .where('id', '=', channels.at(-1)?.id ?? 0)
      .execute();
    const slots = createDeliverySlots({ most: 1_000, time, logger: pino({ level: 'silent' }) });
    failing = [];
    const webhook = webhookTo(receiver.url);
    delivery = createFeedDelivery({
      database: counted(database, () => statements++),
      time,
      logger: pino({ level: 'silent' }),
      slots: { ...slots, newShare: (isFailing) => (failing.push(isFailing), slots.newShare(isFailing)) },
      deliverers: createDeliverers(database, { id: 'one', time, logger: pino({ level: 'silent' }) }),
      targetOf: ({ definition }) => (definition === null ? undefined : webhook),
      restorePurged: async () => undefined,
      lifecycle: createLifecycle(),
      registry: 'operations',
    });
    await record(database, outbox.feed, 1, [], 1);
    await time.settled(delivery.start(SAMPLE_FEED));
  });

  afterEach(() => time.settled(delivery.stop()));

  it('begin with the connections of slow sinks where the sink failed before the start', async () => {
    await time.until('all have begun', () => failing.length >= SUBSCRIPTIONS);
    expect(failing.filter(Boolean)).to.have.length(1);
  });

  it('are looked for together, and include what another process enqueued', async () => {
    // They start one after the other.
    await time.pass(10_000);
    statements = 0;
    await time.pass(5_000);
    expect(statements, 'in five looks').to.be.within(1, SUBSCRIPTIONS);
    const { database, feed } = outbox;
    const recordedAt = time.now();
    await record(database, feed, 2, [eventIn(2, 7n)], recordedAt);
    await time.until('each has it', () => receiver.deliveries.length === SUBSCRIPTIONS);
    expect(time.now() - recordedAt).to.be.at.most(1_000);
  });
});

/** The same database; calls `onStatement` for each statement. */
function counted(database: Database, onStatement: () => void): Database {
  const counter: KyselyPlugin = {
    transformQuery: ({ node }) => (onStatement(), node),
    transformResult: async ({ result }) => result,
  };
  const db = database.db.withPlugin(counter);
  return { ...database, db, transact: (work) => db.transaction().execute(work) };
}
