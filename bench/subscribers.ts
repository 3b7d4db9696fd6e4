import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import { systemClock } from '../service/base/clock';
import { signingKeyOf } from '../service/base/signing-keys';
import type { Database } from '../service/database/database';
import { createDeliverySlots } from '../service/delivery/delivery-slots';
import { createFeedDelivery, type FeedDelivery } from '../service/delivery/feed-delivery';
import { DEFAULT_SUBSCRIPTION } from '../service/outbox/channels';
import { targetOf } from '../service/subscriptions/manage-subscriptions';
import { parseSubscription } from '../service/subscriptions/parse-subscription';
import { createSecretsCipher } from '../service/subscriptions/secrets';
import { addSubscription, subscriptionOf } from '../service/subscriptions/stored-subscriptions';
import { discardingLogger } from './discarding-logger';

const cipher = createSecretsCipher(undefined);
const signingKeys = { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
const RULES = { allowPrivate: true, allowLoopback: true };

/** Adds a subscription. `members`: those of a POST, besides the sink. */
export async function subscribe(database: Database, sink: string, members: object = {}): Promise<void> {
  const body = { sink, protocol: 'HTTP', ...members };
  await addSubscription(database, parseSubscription(body, randomUUID()), cipher, Date.now());
}

/** Removes the subscription `default` from the existing feeds, so that it gets no events. */
export async function leaveOutDefault({ db }: Database): Promise<void> {
  await db
    .deleteFrom('channels')
    .where('subscription', 'in', (eb) =>
      eb.selectFrom('subscriptions').select('id').where('name', '=', DEFAULT_SUBSCRIPTION),
    )
    .execute();
}

/** Delivers a feed as the service does, to the subscriptions of the API. */
export function deliverToSubscribers(database: Database): FeedDelivery {
  const log = discardingLogger();
  const delivery = createFeedDelivery({
    database,
    clock: systemClock,
    logger: log.logger,
    slots: createDeliverySlots({ most: 1_000, logger: log.logger }),
    targetOf: ({ subscription, definition, secrets, state }) => {
      if (definition === null) return undefined;
      const stored = subscriptionOf({ name: subscription, definition, secrets, state }, cipher);
      return targetOf(stored, signingKeys, { rules: RULES, lookup });
    },
    restorePurged: async () => undefined,
    onAttempt: () => undefined,
  });
  return { ...delivery, stop: () => delivery.stop().finally(() => log.end()) };
}
