import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { TestEvent } from '../../client/events';
import type { Time } from '../base/time';
import type { Holder } from '../access/access-keys';
import { ConfigurationError, cut, RequestError } from '../base/errors';
import type { SigningKeys } from '../base/signing-keys';
import { checkSink, type SinkRules } from '../base/sink-rules';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import {
  failureOf,
  createWebhookClient,
  newWebhookSecret,
  type WebhookTarget,
} from '../delivery/attempt-delivery';
import type { SinkGuard } from '../delivery/guarded-connector';
import { TEST_TYPE } from '../events/cloud-event';
import type { Selection } from '../events/select-events';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import { distinctConditions, readConditions } from '../outbox/conditions';
import {
  addSubscription,
  defaultStateOf,
  findSubscription,
  followedFeeds,
  listSubscriptions,
  removeSubscription,
  replaceSubscription,
  setDefaultState,
  subscriptionOf,
  withFailures,
  withoutSecretsOf,
  type SubscriptionRow,
} from './stored-subscriptions';
import {
  parseReplacement,
  parseSubscription,
  presentDefault,
  presentSubscription,
  STATE_OF_DEFAULT,
  type StoredSubscription,
  type Subscription,
} from './subscription';

/** The settings that subscriptions depend on. Without a signing key nothing can be delivered. */
type SubscriptionSettings = Pick<
  Config,
  | 'allowPrivateSinks'
  | 'network'
  | 'registries'
  | 'secretsKey'
  | 'signingKeys'
  | 'subscriptionFailingAfterMinutes'
>;

/** The rules for the sink of a subscription of the API. With a scope, it is at no private address. */
export function sinkRulesOf(
  { allowPrivateSinks, network }: Pick<Config, 'allowPrivateSinks' | 'network'>,
  { scope }: Pick<Selection, 'scope'> = {},
): SinkRules {
  const isScoped = scope !== undefined;
  return { allowPrivate: allowPrivateSinks && !isScoped, allowLoopback: network.local, isScoped };
}

/** The management of all subscriptions. Secrets are shown once, when they are made. */
export interface Subscriptions {
  add(body: unknown): Promise<StoredSubscription>;
  /**
   * Lists subscriptions, `default` first, and those that are failing with `failingSince`. `next`: the `after`
   * of the next page. Undefined if there is no subscription `after`.
   */
  list(page: {
    after?: string | undefined;
    limit: number;
  }): Promise<{ subscriptions: Subscription[]; next: string | undefined } | undefined>;
  find(name: string): Promise<Subscription>;
  /** Finds a subscription, with `failingSince` if it is failing. */
  show(name: string): Promise<Subscription>;
  /** Replaces a subscription, or sets the state of `default`. */
  replace(name: string, body: unknown): Promise<StoredSubscription>;
  /** Removes nothing if events are undelivered and `isForced` is false. */
  remove(
    name: string,
    isForced: boolean,
  ): Promise<{ undelivered: number; subscription: Subscription; isRemoved: boolean }>;
  /** Sends a test event to the sink, once. */
  test(name: string): Promise<TestResult>;
}

/** The answer of a sink to a test event. `error`: null if it was a success. */
export interface TestResult {
  isDelivered: boolean;
  eventId: string;
  milliseconds: number;
  status: number | null;
  error: string | null;
}

/**
 * Creates the management of subscriptions: those of the API, and `default`, of which the settings define
 * everything but the state.
 *
 * @param parts `lookup` is replaced in tests; `onChanged` is called after each change; `holder`: its own
 *   subscriptions alone exist.
 * @throws RequestError from its methods: SUBSCRIPTION_UNKNOWN, SUBSCRIPTION_IN_SETTINGS,
 *   SUBSCRIPTION_INVALID, SINK_NOT_ALLOWED, SECRETS_KEY_MISSING, SECRETS_KEY_WRONG, SIGNING_KEY_MISSING,
 *   SUBSCRIPTIONS_TOO_MANY.
 */
export function createSubscriptions(
  config: SubscriptionSettings,
  parts: {
    database: Database;
    time: Time;
    lookup?: LookupFunction;
    onChanged: () => Promise<void>;
    holder?: Holder | undefined;
  },
): Subscriptions {
  const { database, time, onChanged, holder } = parts;
  const owner = holder?.owner;
  const isDefault = (name: string | undefined): boolean => name === DEFAULT_SUBSCRIPTION && !holder;
  const { db } = database;
  const conditions = async () => distinctConditions(await readConditions(db));

  async function findDefault(): Promise<Subscription | undefined> {
    const feeds = await followedFeeds(config, db);
    return presentDefault(config.registries, await defaultStateOf(db, feeds));
  }

  async function findRow(name: string): Promise<SubscriptionRow> {
    return (await findSubscription(db, name, owner)) ?? refuseUnknown(name);
  }

  async function find(name: string): Promise<Subscription> {
    if (isDefault(name)) return (await findDefault()) ?? refuseUnknown(name);
    return withoutSecretsOf(await findRow(name));
  }

  /** Makes the checks that need the settings, and the secret of Standard Webhooks. */
  function completed(subscription: StoredSubscription, stored?: StoredSubscription): StoredSubscription {
    signingKeysIn(config);
    checkSink(subscription.sink, sinkRulesOf(config, subscription));
    if (!subscription.config.standardWebhooks) return subscription;
    const secret = stored?.config.secret ?? newWebhookSecret();
    return { ...subscription, config: { ...subscription.config, secret } };
  }

  /** @param otherwise replaces a subscription whose secrets cannot be read. */
  function withSecrets(
    row: SubscriptionRow,
    otherwise: (cause: ConfigurationError) => StoredSubscription,
  ): StoredSubscription {
    try {
      return subscriptionOf(row, config.secretsKey);
    } catch (cause) {
      if (cause instanceof ConfigurationError) return otherwise(cause);
      throw cause;
    }
  }

  return {
    async add(body) {
      const subscription = completed(parseSubscription(body, randomUUID(), holder?.filters));
      await addSubscription(database, subscription, config.secretsKey, time.now(), owner);
      await onChanged();
      return shownWith(subscription);
    },
    async list({ after, limit }) {
      const isOfApi = after !== undefined && !isDefault(after);
      const before = isOfApi ? await findSubscription(db, after, owner) : { id: 0 };
      if (before === undefined) return undefined;
      const ofSettings = after === undefined && !holder ? await findDefault() : undefined;
      const rest = limit - (ofSettings ? 1 : 0);
      const rows = await listSubscriptions(db, { after: before.id, limit: rest + 1, owner });
      const page = [...(ofSettings ? [ofSettings] : []), ...rows.slice(0, rest).map(withoutSecretsOf)];
      return {
        subscriptions: withFailures(page, await conditions()),
        next: rows.length > rest ? page.at(-1)?.id : undefined,
      };
    },
    find,
    async show(name) {
      const found = await find(name);
      const [shown = found] = withFailures([found], await conditions());
      return shown;
    },
    async replace(name, body) {
      let shown: StoredSubscription | undefined;
      await find(name);
      if (isDefault(name)) {
        const { data } = STATE_OF_DEFAULT.safeParse(body);
        if (data === undefined)
          throw inSettings(
            'Only its state can be set here: send {"config": {"state": "active"}} or "paused".',
          );
        await setDefaultState(database, data.config.state, time.now());
      } else {
        const change = (row: SubscriptionRow): StoredSubscription => {
          // A PUT has to give all secrets if they cannot be read.
          const stored = withSecrets(row, () => withoutSecretsOf(row));
          const parsed = parseReplacement(body, stored);
          const { startFrom } = stored.config;
          const subscription = completed({ ...parsed, config: { ...parsed.config, startFrom } }, stored);
          shown = shownWith(subscription, stored);
          return subscription;
        };
        await replaceSubscription(database, name, change, config.secretsKey, time.now());
        if (shown === undefined) refuseUnknown(name);
      }
      await onChanged();
      return shown ?? (await find(name));
    },
    async remove(name, isForced) {
      if (isDefault(name)) throw inSettings('Remove WEBHOOK_URL from the settings to end it.');
      await findRow(name);
      const removed = (await removeSubscription(database, name, isForced)) ?? refuseUnknown(name);
      if (removed.isRemoved) await onChanged();
      return removed;
    },
    async test(name) {
      if (isDefault(name)) throw inSettings('Issue a document on a test network to try it.');
      const row = await findRow(name);
      const signingKeys = signingKeysIn(config);
      const subscription = withSecrets(row, (cause) => {
        throw new RequestError(cause.code, cause.message, { cause });
      });
      const guard = { rules: sinkRulesOf(config, subscription), lookup: parts.lookup ?? lookup };
      return sendTestEvent(targetOf(subscription, signingKeys, guard), name, time);
    },
  };
}

function refuseUnknown(name: string): never {
  const remedy = 'List the subscriptions with `npx tdoc subscriptions list`.';
  throw new RequestError('SUBSCRIPTION_UNKNOWN', `There is no subscription ${cut(name)}.`, { remedy });
}

function inSettings(remedy: string): RequestError {
  const message = `The subscription default is made of WEBHOOK_URL and service.config.json. ${remedy}`;
  return new RequestError('SUBSCRIPTION_IN_SETTINGS', message, { remedy });
}

/** A subscription as it is shown, with its secret if that is a new one. */
function shownWith(subscription: StoredSubscription, stored?: StoredSubscription): StoredSubscription {
  const shown = presentSubscription(subscription);
  const { secret } = subscription.config;
  const isNew = secret !== undefined && secret !== stored?.config.secret;
  return isNew ? { ...shown, config: { ...shown.config, secret } } : shown;
}

/** The keys that sign what subscribers get. @throws RequestError SIGNING_KEY_MISSING */
export function signingKeysIn({ signingKeys }: Pick<SubscriptionSettings, 'signingKeys'>): SigningKeys {
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
): WebhookTarget {
  const { standardWebhooks, secret, ...options } = config;
  return {
    ...options,
    url: sink,
    headers: protocolsettings?.headers ?? {},
    signingKeys,
    guard,
    standardWebhooks: standardWebhooks && secret !== undefined ? { secret } : undefined,
  };
}

/** Sends a test event to a target, once. */
export async function sendTestEvent(
  target: WebhookTarget,
  subscription: string,
  time: Time,
): Promise<TestResult> {
  const client = createWebhookClient(target, time);
  try {
    const event = testEventOf(subscription, randomUUID(), time.now());
    const start = time.elapsed();
    const result = await client.post(JSON.stringify(event), event.id);
    const error = failureOf(result) ?? null;
    return {
      isDelivered: error === null,
      eventId: event.id,
      milliseconds: Math.round(time.elapsed() - start),
      status: result.status ?? null,
      error,
    };
  } finally {
    await client.close();
  }
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
