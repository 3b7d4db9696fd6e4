import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { TestEvent } from '../../client/events';
import type { Clock } from '../base/clock';
import { ConfigurationError, RequestError } from '../base/errors';
import type { SigningKeys } from '../base/signing-keys';
import { checkSink, type SinkRules } from '../base/sink-rules';
import type { Database } from '../database/database';
import { classifyOutcome } from '../delivery/attempt-delivery';
import type { ChannelTarget } from '../delivery/feed-delivery';
import type { SinkGuard } from '../delivery/guarded-connector';
import { createWebhookClient, newWebhookSecret } from '../delivery/post';
import { TEST_TYPE } from '../events/event-types';
import { parseReplacement, parseSubscription } from './parse-subscription';
import { presentSubscription } from './present-subscription';
import type { SecretsCipher } from './secrets';
import {
  addSubscription,
  findSubscription,
  listSubscriptions,
  removeSubscription,
  replaceSubscription,
  subscriptionOf,
  withoutSecretsOf,
  type SubscriptionRow,
} from './stored-subscriptions';
import type { StoredSubscription, Subscription } from './subscription';

/** The parts that subscriptions need. */
export interface SubscriptionsOptions {
  database: Database;
  cipher: SecretsCipher;
  rules: SinkRules;
  /** Without a key nothing can be delivered. */
  signingKeys: SigningKeys | undefined;
  clock: Clock;
  newId: () => string;
  /** Replaced in tests. */
  lookup?: LookupFunction;
  /** Called after each change. */
  onChanged(): Promise<void>;
}

/** The management of the subscriptions of the API. Secrets are shown once, when they are made. */
export type Subscriptions = ReturnType<typeof createSubscriptions>;

/**
 * Creates the management of subscriptions.
 *
 * @throws RequestError from its methods: SUBSCRIPTION_INVALID, SINK_NOT_ALLOWED, SECRETS_KEY_MISSING,
 *   SECRETS_KEY_WRONG, SIGNING_KEY_MISSING, SUBSCRIPTIONS_TOO_MANY.
 */
export function createSubscriptions(options: SubscriptionsOptions) {
  const { database, cipher, clock, rules } = options;
  const { db } = database;

  /** Makes the checks that need the settings, and the secret of Standard Webhooks. */
  function completed(
    subscription: StoredSubscription,
    stored?: StoredSubscription,
  ): { subscription: StoredSubscription; secret: string | undefined } {
    signingKeysIn(options);
    checkSink(subscription.sink, rules);
    if (!subscription.config.standardWebhooks) return { subscription, secret: undefined };
    const kept = stored?.config.secret;
    const secret = kept ?? newWebhookSecret();
    return {
      subscription: { ...subscription, config: { ...subscription.config, secret } },
      secret: kept === undefined ? secret : undefined,
    };
  }

  /** The subscription, without its secrets if they cannot be read. A PUT then has to give all of them. */
  function readable(row: SubscriptionRow): StoredSubscription {
    try {
      return subscriptionOf(row, cipher);
    } catch (error) {
      if (error instanceof ConfigurationError) return withoutSecretsOf(row);
      throw error;
    }
  }

  function withSecrets(row: SubscriptionRow): StoredSubscription {
    try {
      return subscriptionOf(row, cipher);
    } catch (cause) {
      if (!(cause instanceof ConfigurationError)) throw cause;
      throw new RequestError(cause.code, cause.message, { cause });
    }
  }

  return {
    async add(body: unknown): Promise<StoredSubscription> {
      const { subscription, secret } = completed(parseSubscription(body, options.newId()));
      await addSubscription(database, subscription, cipher, clock.now());
      await options.onChanged();
      return shownWith(subscription, secret);
    },
    async list(page: { after: string | undefined; limit: number }): Promise<Subscription[]> {
      return (await listSubscriptions(db, page)).map(withoutSecretsOf);
    },
    async find(name: string): Promise<Subscription | undefined> {
      const row = await findSubscription(db, name);
      return row && withoutSecretsOf(row);
    },
    /** Undefined if there is no such subscription. */
    async replace(name: string, body: unknown): Promise<StoredSubscription | undefined> {
      let shown: StoredSubscription | undefined;
      const change = (row: SubscriptionRow): StoredSubscription => {
        const stored = readable(row);
        const parsed = parseReplacement(body, stored);
        const { startFrom } = stored.config;
        const { subscription, secret } = completed(
          { ...parsed, config: { ...parsed.config, startFrom } },
          stored,
        );
        shown = shownWith(subscription, secret);
        return subscription;
      };
      await replaceSubscription(database, name, change, cipher, clock.now());
      await options.onChanged();
      return shown;
    },
    /** Removes nothing if events are undelivered and `isForced` is false. */
    async remove(name: string, isForced: boolean) {
      const removed = await removeSubscription(database, name, isForced);
      if (removed?.isRemoved) await options.onChanged();
      return removed;
    },
    /** Sends a test event to the sink, once. `error`: undefined if it was a success. */
    async test(name: string) {
      const row = await findSubscription(db, name);
      if (row === undefined) return undefined;
      const signingKeys = signingKeysIn(options);
      const target = targetOf(withSecrets(row), signingKeys, { rules, lookup: options.lookup ?? lookup });
      const client = createWebhookClient({ ...target, clock });
      try {
        const event = testEventOf(name, options.newId(), clock.now());
        const start = performance.now();
        const outcome = classifyOutcome(await client.post(JSON.stringify(event), event.id), clock.now());
        return {
          eventId: event.id,
          status: outcome.status,
          error: outcome.delivered ? undefined : outcome.error,
          milliseconds: Math.round(performance.now() - start),
        };
      } finally {
        await client.close();
      }
    },
  };
}

function shownWith(subscription: StoredSubscription, secret: string | undefined): StoredSubscription {
  const shown = presentSubscription(subscription);
  return secret === undefined ? shown : { ...shown, config: { ...shown.config, secret } };
}

function signingKeysIn({ signingKeys }: SubscriptionsOptions): SigningKeys {
  if (signingKeys !== undefined) return signingKeys;
  const remedy = 'Make a key with `npx tdoc signing-key`, and restart the service.';
  throw new RequestError(
    'SIGNING_KEY_MISSING',
    `Nothing can be signed for subscribers: SIGNING_PRIVATE_KEY is not set. ${remedy}`,
    { remedy },
  );
}

/**
 * The target of a subscription's deliveries.
 *
 * @param guard absent for `default`: the operator's own sink may be at any address.
 */
export function targetOf(
  { sink, protocolsettings, config }: StoredSubscription,
  signingKeys: SigningKeys,
  guard?: SinkGuard,
): ChannelTarget {
  const { timeoutMs, maxConcurrentDeliveries, retry, contentType, standardWebhooks, secret } = config;
  return {
    url: sink,
    headers: protocolsettings?.headers ?? {},
    timeoutMs,
    maxConcurrentDeliveries,
    retry,
    contentType,
    signingKeys,
    ...(guard && { guard }),
    ...(standardWebhooks && secret !== undefined && { standardWebhooks: { secret } }),
  };
}

/** An event that tries a subscription out. It is about nothing on the chain, so it has no pair. */
function testEventOf(subscription: string, id: string, now: number): TestEvent {
  return {
    specversion: '1.0',
    id,
    source: `urn:service:subscriptions:${subscription}`,
    type: TEST_TYPE,
    datacontenttype: 'application/json',
    time: new Date(now).toISOString(),
    data: { subscription, test: true },
  };
}
