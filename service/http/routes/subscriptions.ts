import { Router, type RouterMiddleware } from '@koa/router';
import type { Context } from 'koa';
import { parseTokenId } from '../../registry/token-id-forms';
import type { Subscriptions } from '../../subscriptions/manage-subscriptions';
import type { Subscription, SubscriptionState } from '../../subscriptions/subscription';
import type {
  DeliveriesPage,
  DeliveriesQuery,
  DeliveryState,
  Place,
  Redelivery,
} from '../../subscriptions/undelivered-events';
import { requireAdminKey } from '../middleware/admin-key';
import { declaredBody } from '../middleware/declared-body';
import { HttpError } from '../middleware/errors';
import { limitOf, link, noStore, textOf, wrongQuery } from '../query';
import { smallJson, type SmallJsonState } from '../middleware/small-json';

/** The parts that the paths under /subscriptions need. */
export interface SubscriptionRoutes {
  readonly adminApiKey: string;
  readonly subscriptions: Subscriptions;
  /** The subscription of the settings; undefined if there is none. */
  defaultSubscription(): Promise<Subscription | undefined>;
  setDefaultState(state: SubscriptionState): Promise<void>;
  /** The time since which deliveries fail, for a member that no client sets. */
  failingSince(name: string): Promise<string | undefined>;
  deliveries(query: DeliveriesQuery): Promise<DeliveriesPage>;
  redeliver(
    name: string,
    selection: Redelivery,
  ): Promise<readonly { registry: string; queued: number; alreadyWaiting: number }[]>;
}

const DEFAULT = 'default';
const PATH = '/subscriptions';
const DELIVERY_STATES: readonly string[] = ['waiting', 'failed', 'dead'];

type Handler = RouterMiddleware<SmallJsonState>;

/** The paths under /subscriptions. Each needs the admin key. */
export function subscriptionRouter(options: SubscriptionRoutes): Router<SmallJsonState> {
  const router = new Router<SmallJsonState>();
  const { subscriptions } = options;
  const admin = requireAdminKey(options.adminApiKey);
  const nameOf = (ctx: { params: Record<string, string> }): string => ctx.params.id ?? '';

  const list: Handler = async (ctx) => {
    noStore(ctx);
    const limit = limitOf(ctx);
    const after = textOf(ctx, 'after');
    if (after !== undefined && after !== DEFAULT && (await subscriptions.find(after)) === undefined)
      throw wrongQuery('after', 'names no subscription: it was deleted. Begin with the first page');
    const ofSettings = after === undefined ? await options.defaultSubscription() : undefined;
    const rest = limit - (ofSettings ? 1 : 0);
    const page = await subscriptions.list({ after: after === DEFAULT ? undefined : after, limit: rest + 1 });
    const shown = [...(ofSettings ? [ofSettings] : []), ...page.slice(0, rest)];
    const last = page.length > rest ? shown.at(-1) : undefined;
    if (last) link(ctx, { after: last.id, limit });
    ctx.body = await Promise.all(shown.map(withHealth));
  };

  const withHealth = async (subscription: Subscription): Promise<object> => {
    const failingSince = await options.failingSince(subscription.id);
    return failingSince === undefined ? subscription : { ...subscription, failingSince };
  };

  const create: Handler = async (ctx) => {
    noStore(ctx);
    const added = await subscriptions.add(ctx.state.body);
    ctx.status = 201;
    ctx.set('Location', `${PATH}/${added.id}`);
    ctx.body = added;
  };

  const find: Handler = async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    const found = name === DEFAULT ? await options.defaultSubscription() : await subscriptions.find(name);
    if (found === undefined) throw unknown(name);
    ctx.body = await withHealth(found);
  };

  const replace: Handler = async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) {
      if ((await options.defaultSubscription()) === undefined) throw unknown(name);
      await options.setDefaultState(stateOf(ctx.state.body));
      ctx.body = await options.defaultSubscription();
      return;
    }
    const replaced = await subscriptions.replace(name, ctx.state.body);
    if (replaced === undefined) throw unknown(name);
    ctx.body = replaced;
  };

  const remove: Handler = async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) throw inSettings('Remove WEBHOOK_URL from the settings to end it.');
    const removed = await subscriptions.remove(name, flagOf(ctx, 'force'));
    if (removed === undefined) throw unknown(name);
    const { undelivered, isRemoved, subscription } = removed;
    if (!isRemoved) {
      const message =
        `${undelivered} events are not delivered yet, and would be lost for this subscriber. ` +
        'Repeat the request with ?force=true to delete them with it.';
      throw new HttpError(409, 'SUBSCRIPTION_UNDELIVERED', message);
    }
    ctx.set('X-Undelivered', String(undelivered));
    ctx.body = subscription;
  };

  const test: Handler = async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) throw inSettings('Issue a document on a test network to try it.');
    const outcome = await subscriptions.test(name);
    if (outcome === undefined) throw unknown(name);
    const { status, error, ...rest } = outcome;
    ctx.body = { isDelivered: error === undefined, ...rest, status: status ?? null, error: error ?? null };
  };

  const redeliver: Handler = async (ctx) => {
    noStore(ctx);
    const name = await existing(nameOf(ctx));
    ctx.status = 202;
    ctx.body = { registries: await options.redeliver(name, selectionOf(ctx.state.body)) };
  };

  const deliveries: Handler = async (ctx) => {
    noStore(ctx);
    const subscription = await existing(nameOf(ctx));
    const limit = limitOf(ctx);
    const state = textOf(ctx, 'state');
    if (state !== undefined && !DELIVERY_STATES.includes(state))
      throw wrongQuery('state', `must be one of ${DELIVERY_STATES.join(', ')}`);
    const token = textOf(ctx, 'token');
    const tokenId = token === undefined ? undefined : parseTokenId(token)?.toString();
    if (token !== undefined && tokenId === undefined)
      throw wrongQuery('token', 'must be a token id: decimal digits, or 64 hexadecimal digits');
    const page = await options.deliveries({
      subscription,
      state: state as DeliveryState | undefined,
      tokenId,
      after: placeOf(textOf(ctx, 'after')),
      limit,
    });
    const { next } = page;
    if (next)
      link(ctx, {
        ...(state !== undefined && { state }),
        ...(token !== undefined && { token }),
        after: `${next.channel}.${next.token}.${next.position}`,
        limit,
      });
    ctx.body = page.deliveries.map(({ nextAttemptAt, ...one }) => ({
      ...one,
      nextAttemptAt: nextAttemptAt === null ? null : new Date(nextAttemptAt).toISOString(),
    }));
  };

  async function existing(name: string): Promise<string> {
    const found = name === DEFAULT ? await options.defaultSubscription() : await subscriptions.find(name);
    if (found === undefined) throw unknown(name);
    return name;
  }

  router.get(PATH, admin, list);
  router.post(PATH, admin, declaredBody, smallJson, create);
  router.get(`${PATH}/:id`, admin, find);
  router.put(`${PATH}/:id`, admin, declaredBody, smallJson, replace);
  router.delete(`${PATH}/:id`, admin, remove);
  router.post(`${PATH}/:id/test`, admin, test);
  router.post(`${PATH}/:id/redeliver`, admin, declaredBody, smallJson, redeliver);
  router.get(`${PATH}/:id/deliveries`, admin, deliveries);
  return router;
}

function flagOf(ctx: Context, name: string): boolean {
  const text = textOf(ctx, name);
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw wrongQuery(name, 'must be true or false');
}

function placeOf(text: string | undefined): Place | undefined {
  if (text === undefined) return undefined;
  const [, channel, token, position] = /^(\d{1,15})\.(\d{1,15})\.(-?\d{1,16})$/.exec(text) ?? [];
  if (position === undefined) throw wrongQuery('after', 'must be taken from the header Link of a page');
  return { channel: Number(channel), token: Number(token), position: Number(position) };
}

/** The body of PUT /subscriptions/default: `{"config": {"state": "active" | "paused"}}`. */
function stateOf(body: Readonly<Record<string, unknown>>): 'active' | 'paused' {
  const { config, ...others } = body;
  const { state, ...options } = (typeof config === 'object' && config !== null ? config : {}) as Record<
    string,
    unknown
  >;
  const isOnlyState = Object.keys(others).length + Object.keys(options).length === 0;
  if (isOnlyState && (state === 'active' || state === 'paused')) return state;
  throw inSettings('Only its state can be set here: send {"config": {"state": "active"}} or "paused".');
}

function inSettings(remedy: string): HttpError {
  const message = `The subscription default is made of WEBHOOK_URL and service.config.json. ${remedy}`;
  return new HttpError(409, 'SUBSCRIPTION_IN_SETTINGS', message);
}

function unknown(name: string): HttpError {
  return new HttpError(404, 'SUBSCRIPTION_UNKNOWN', `There is no subscription ${name.slice(0, 64)}.`);
}

/** The body of a redelivery: one of `event`, `dead` and `fromBlock`. */
function selectionOf(body: Readonly<Record<string, unknown>>): Redelivery {
  const names = Object.keys(body);
  const { event, dead, fromBlock } = body;
  if (names.length === 1) {
    if (typeof event === 'string') return { eventId: event };
    if (dead === true) return { dead: true };
    if (typeof fromBlock === 'number' && Number.isSafeInteger(fromBlock) && fromBlock >= 0)
      return { fromBlock };
  }
  const message =
    'The body must have one member: {"event": "<id>"}, {"dead": true} or {"fromBlock": <number>}.';
  throw new HttpError(400, 'REDELIVERY_INVALID', message);
}
