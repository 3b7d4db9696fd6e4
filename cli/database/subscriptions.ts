import { systemClock } from '../../service/base/clock';
import { ConfigurationError } from '../../service/base/errors';
import { DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import { findFeeds } from '../../service/outbox/feeds';
import { presentDefault } from '../../service/subscriptions/present-subscription';
import { defaultStateOf, setDefaultState } from '../../service/subscriptions/stored-subscriptions';
import { withFailures, type HealthQuery } from '../../service/subscriptions/subscription-health';
import type { Subscription } from '../../service/subscriptions/subscription';
import { healthQueryOf, storedSubscriptions } from '../../service/composition/subscribing';
import type { Config } from '../../service/config/config';
import type { Database } from '../../service/database/database';
import type { Subscriptions } from '../../service/subscriptions/manage-subscriptions';
import type { Answer } from '../answer';
import { Refusal } from '../errors';
import { readJsonInput } from '../files/user-file';
import { printable, printableJson } from '../terminal/printable';
import { unknownSubscription, withDatabase } from './with-database';

/** The subscriptions in the database of a service. */
interface OpenSubscriptions {
  config: Config;
  database: Database;
  subscriptions: Subscriptions;
}

async function withSubscriptions<T>(work: (open: OpenSubscriptions) => Promise<T>): Promise<T> {
  return withDatabase(async (database, config) => {
    const onChanged = async (): Promise<void> => undefined;
    const subscriptions = storedSubscriptions(config, { database, clock: systemClock, onChanged });
    return work({ config, database, subscriptions });
  });
}

/** Subscriptions per query. */
const PAGE = 500;

/** Lists all subscriptions, the one of the settings first. */
export async function listAll(): Promise<Answer> {
  return withSubscriptions(async (open) => {
    const ofSettings = await findDefault(open);
    const all: Subscription[] = ofSettings ? [ofSettings] : [];
    let after: string | undefined;
    for (;;) {
      const page = await open.subscriptions.list({ after, limit: PAGE });
      all.push(...page);
      if (page.length < PAGE) break;
      after = page.at(-1)?.id;
    }
    const listed = await withFailures(open.database.db, all, await queryOf(open));
    const lines = all.map(({ id, sink, config }) => `${id}  ${config.state}  ${printable(sink)}`);
    return {
      lines: lines.length > 0 ? lines : ['no subscriptions'],
      json: listed,
      isYes: true,
    };
  });
}

/** Shows a subscription. @throws ConfigurationError SUBSCRIPTION_UNKNOWN */
export async function showOne(id: string): Promise<Answer> {
  return withSubscriptions(async (open) => {
    const found = id === DEFAULT_SUBSCRIPTION ? await findDefault(open) : await open.subscriptions.find(id);
    const [one = refuseUnknown(id)] = found
      ? await withFailures(open.database.db, [found], await queryOf(open))
      : [];
    return shown(one);
  });
}

/** Makes the subscription that a file describes; `-` is standard input. */
export async function create(file: string): Promise<Answer> {
  const body = await readJsonInput(file);
  return withSubscriptions(async ({ subscriptions }) => shown(await subscriptions.add(body)));
}

/** Replaces a subscription by the one that a file describes. For `default` it sets only the state. */
export async function update(id: string, file: string): Promise<Answer> {
  const body = await readJsonInput(file);
  return withSubscriptions(async (open) => {
    if (id !== DEFAULT_SUBSCRIPTION)
      return shown((await open.subscriptions.replace(id, body)) ?? refuseUnknown(id));
    const state = (body as { config?: { state?: unknown } } | null)?.config?.state;
    const isOnlyState = JSON.stringify(body) === JSON.stringify({ config: { state } });
    if (!isOnlyState || (state !== 'active' && state !== 'paused'))
      throw inSettings('Only its state can be set here: {"config": {"state": "active"}} or "paused".');
    await setDefaultState(open.database, state, systemClock.now());
    return shown((await findDefault(open)) ?? refuseUnknown(id));
  });
}

/** Deletes a subscription. @throws Refusal SUBSCRIPTION_UNDELIVERED if events wait and it is not forced. */
export async function remove(id: string, { force }: { force?: true }): Promise<Answer> {
  if (id === DEFAULT_SUBSCRIPTION) throw inSettings('Remove WEBHOOK_URL from the settings to end it.');
  return withSubscriptions(async ({ subscriptions }) => {
    const removed = (await subscriptions.remove(id, force === true)) ?? refuseUnknown(id);
    const { undelivered, isRemoved } = removed;
    if (!isRemoved) {
      const remedy = 'Give --force to delete them with it.';
      const problem = `${undelivered} events are not delivered yet, and would be lost for this subscriber.`;
      throw new Refusal('SUBSCRIPTION_UNDELIVERED', `${problem} ${remedy}`, { remedy });
    }
    return {
      lines: [`${id} deleted, with ${undelivered} undelivered events`],
      json: { deleted: id, undelivered },
      isYes: true,
    };
  });
}

/** Sends a test event. The answer is no if the sink does not accept it. */
export async function test(id: string): Promise<Answer> {
  if (id === DEFAULT_SUBSCRIPTION) throw inSettings('Issue a document on a test network to try it.');
  return withSubscriptions(async ({ subscriptions }) => {
    const { status, error, ...rest } = (await subscriptions.test(id)) ?? refuseUnknown(id);
    const isDelivered = error === undefined;
    const outcome = isDelivered ? `delivered: ${status}` : `not delivered: ${printable(error)}`;
    return {
      lines: [`${rest.eventId}  ${outcome}  ${rest.milliseconds} ms`],
      json: { isDelivered, ...rest, status: status ?? null, error: error ?? null },
      isYes: isDelivered,
    };
  });
}

async function queryOf({ config, database }: OpenSubscriptions): Promise<HealthQuery> {
  return healthQueryOf(config, database.db, systemClock.now());
}

async function findDefault({
  config,
  database: { db },
}: OpenSubscriptions): Promise<Subscription | undefined> {
  return presentDefault(config.registries, await defaultStateOf(db, await findFeeds(db)));
}

function shown(subscription: Subscription): Answer {
  return { lines: printableJson(subscription).split('\n'), json: subscription, isYes: true };
}

function refuseUnknown(id: string): never {
  throw unknownSubscription(id);
}

function inSettings(remedy: string): ConfigurationError {
  const message = `The subscription default is made of WEBHOOK_URL and service.config.json. ${remedy}`;
  return new ConfigurationError('SUBSCRIPTION_IN_SETTINGS', message, { remedy });
}
