import { expect } from 'chai';
import pino from 'pino';
import { createLifecycle } from '../../service/base/lifecycle';
import { newDeferred, systemTime } from '../../service/base/time';
import type { Deliverers, OwnDeliveries } from '../../service/delivery/deliverers';
import { createDeliverySlots } from '../../service/delivery/delivery-slots';
import { createFeedDelivery, type FeedDelivery } from '../../service/delivery/feed-delivery';
import type { WebhookTarget } from '../../service/delivery/attempt-delivery';
import { noteChange } from '../../service/outbox/changes';
import { DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import { blocksOf, emptyOutbox } from '../helpers/database/empty-outbox';
import { describeOnEngines } from '../helpers/database/engines';
import { startWorker } from '../helpers/database/running-worker';
import { eventIn, SAMPLE_FEED } from '../helpers/database/sample-feed';
import { eventually } from '../helpers/eventually';
import { serve } from '../helpers/http-server';
import { webhookTo } from '../helpers/receiver/webhook-to';

describeOnEngines('a limit that processes divide', (on, engine) => {
  // One process has a SQLite database for itself.
  if (engine === 'SQLite') return;
  const outbox = emptyOutbox(on);
  const logger = pino({ level: 'silent' });
  let joined: string[];
  let own: OwnDeliveries | undefined;
  let share: number;
  let target: WebhookTarget | undefined;
  let delivery: FeedDelivery;

  beforeEach(() => {
    joined = [];
    share = 1;
    target = undefined;
    const deliverers: Deliverers = {
      join: async (feed, deliveries) => {
        own = deliveries;
        joined.push(`${feed} joined`);
      },
      leave: async (feed) => void joined.push(`${feed} left`),
      shareOf: () => share,
    };
    delivery = createFeedDelivery({
      database: outbox.database,
      time: systemTime,
      logger,
      slots: createDeliverySlots({ most: 1_000, time: systemTime, logger }),
      deliverers,
      targetOf: () => target,
      restorePurged: async () => undefined,
      lifecycle: createLifecycle(),
      registry: 'operations',
    });
  });

  afterEach(() => delivery.stop());

  it('is not left by a process that stands by without a channel and looks again', async () => {
    for (let start = 1; start <= 3; start++) await delivery.start(SAMPLE_FEED);
    expect(new Set(joined)).to.deep.equal(new Set([`${SAMPLE_FEED} joined`]));
    expect([...(own?.lacking ?? [])]).to.deep.equal([outbox.channel]);
  });

  it('counts the last delivery of a channel that is ending', async () => {
    const answered = newDeferred<void>();
    let isAsked = false;
    await using sink = await serve((_, response) => {
      isAsked = true;
      void answered.promise.then(() => response.writeHead(204).end());
    });
    target = webhookTo(sink.url);
    outbox.now = systemTime.now();
    await outbox.store(1, [eventIn(1, 7n)]);
    await delivery.start(SAMPLE_FEED);
    await eventually('the sink is asked', () => isAsked);
    await outbox.database.transact(async (transaction) => {
      await noteChange(transaction, DEFAULT_SUBSCRIPTION);
      await transaction.updateTable('subscriptions').set({ changed_at: 2 }).execute();
    });
    await delivery.refresh();
    expect(own?.fit()).to.equal(true);
    share = 0;
    expect(own?.fit()).to.equal(false);
    answered.resolve();
    await eventually('it has ended', () => own?.fit() === true);
  });

  it('leaves order and completeness to a process of an earlier version, which takes all of it', async () => {
    outbox.now = systemTime.now();
    const [TOKENS, BLOCKS] = [5, 30];
    for (let block = 1; block <= BLOCKS; block++) {
      const events = Array.from({ length: TOKENS }, (_, token) =>
        eventIn(block, BigInt(token), { logIndex: token, blockLogIndex: token }),
      );
      await outbox.store(block, events);
    }
    const sent = new Map<string, number[]>();
    const post = async (body: string): Promise<number> => {
      const { subject } = JSON.parse(body) as { subject: string };
      await new Promise(setImmediate);
      sent.set(subject, [...(sent.get(subject) ?? []), ...blocksOf([{ body }])]);
      return 200;
    };
    const { database, channel } = outbox;
    const shares = [Infinity, 1, 1];
    const workers = shares.map((most) => startWorker(database, channel, post, { share: () => most }));
    const all = Array.from({ length: BLOCKS }, (_, index) => index + 1);
    await eventually('all are sent', () => [...sent.values()].flat().length >= TOKENS * BLOCKS);
    await Promise.all(workers.map((worker) => worker.stop()));
    expect([...sent.values()]).to.deep.equal(Array.from({ length: TOKENS }, () => all));
  });
});
