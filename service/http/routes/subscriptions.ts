import type { Context } from 'koa';
import type { RegistryName } from '../../base/registry-name';
import type { Selection } from '../../outbox/redeliver';
import type { UndeliveredPage, UndeliveredQuery } from '../../outbox/undelivered';
import { forReaders } from '../../subscriptions/present-subscription';
import type { Subscriptions } from '../../subscriptions/manage-subscriptions';
import type { Subscription, SubscriptionState } from '../../subscriptions/subscription';
import { REDELIVERY_REQUEST, STATE_OF_DEFAULT, SUBSCRIPTIONS } from '../description/subscriptions';
import { HttpError } from '../middleware/errors';
import type { AccessState } from '../middleware/request-log';
import { linkNextPage, noStore, wrongQuery, type OperationRouter, type QueryOf } from '../operation-router';
import type { SmallJsonState } from '../read-body';

/** The parts that the paths under /subscriptions need. */
export interface SubscriptionRoutes {
  readonly subscriptions: Subscriptions;
  /** The subscription of the settings; undefined if there is none. */
  defaultSubscription(): Promise<Subscription | undefined>;
  setDefaultState(state: SubscriptionState): Promise<void>;
  /** Adds `failingSince`, a member that no client sets, to those whose deliveries fail. */
  withFailures(this: void, subscriptions: readonly Subscription[]): Promise<Subscription[]>;
  deliveries(query: UndeliveredQuery): Promise<UndeliveredPage>;
  redeliver(
    name: string,
    selection: Selection,
  ): Promise<readonly { registry: RegistryName; queued: number; alreadyWaiting: number }[]>;
}

const DEFAULT = 'default';

/** Answers the operations of subscriptions. */
export function answerSubscriptions({ answer }: OperationRouter, options: SubscriptionRoutes): void {
  const { subscriptions } = options;

  const foundBy = async (name: string): Promise<Subscription> => {
    const found = name === DEFAULT ? await options.defaultSubscription() : await subscriptions.find(name);
    if (found === undefined) throw unknown(name);
    return found;
  };

  const shownTo = async (ctx: Context, found: readonly Subscription[]): Promise<Subscription[]> => {
    const { role } = ctx.state as AccessState;
    return options.withFailures(role === 'reader' ? found.map(forReaders) : found);
  };

  answer<QueryOf<typeof SUBSCRIPTIONS.listSubscriptions>>(SUBSCRIPTIONS.listSubscriptions, async (ctx) => {
    noStore(ctx);
    const { limit, after } = ctx.state.query;
    if (after !== undefined && after !== DEFAULT && (await subscriptions.find(after)) === undefined)
      throw wrongQuery('after', 'names no subscription: it was deleted. Begin with the first page');
    const ofSettings = after === undefined ? await options.defaultSubscription() : undefined;
    const rest = limit - (ofSettings ? 1 : 0);
    const page = await subscriptions.list({ after: after === DEFAULT ? undefined : after, limit: rest + 1 });
    const shown = [...(ofSettings ? [ofSettings] : []), ...page.slice(0, rest)];
    const last = page.length > rest ? shown.at(-1) : undefined;
    if (last) linkNextPage(ctx, last.id);
    ctx.body = await shownTo(ctx, shown);
  });

  answer<SmallJsonState>(SUBSCRIPTIONS.createSubscription, async (ctx) => {
    noStore(ctx);
    const added = await subscriptions.add(ctx.state.body);
    ctx.status = 201;
    ctx.set('Location', `${SUBSCRIPTIONS.createSubscription.path}/${added.id}`);
    ctx.body = added;
  });

  answer(SUBSCRIPTIONS.getSubscription, async (ctx) => {
    noStore(ctx);
    [ctx.body] = await shownTo(ctx, [await foundBy(nameOf(ctx))]);
  });

  answer<SmallJsonState>(SUBSCRIPTIONS.replaceSubscription, async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) {
      await foundBy(name);
      await options.setDefaultState(stateOf(ctx.state.body));
      ctx.body = await options.defaultSubscription();
      return;
    }
    const replaced = await subscriptions.replace(name, ctx.state.body);
    if (replaced === undefined) throw unknown(name);
    ctx.body = replaced;
  });

  answer<QueryOf<typeof SUBSCRIPTIONS.deleteSubscription>>(SUBSCRIPTIONS.deleteSubscription, async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) throw inSettings('Remove WEBHOOK_URL from the settings to end it.');
    const removed = await subscriptions.remove(name, ctx.state.query.force === 'true');
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
  });

  answer(SUBSCRIPTIONS.testSubscription, async (ctx) => {
    noStore(ctx);
    const name = nameOf(ctx);
    if (name === DEFAULT) throw inSettings('Issue a document on a test network to try it.');
    const outcome = await subscriptions.test(name);
    if (outcome === undefined) throw unknown(name);
    const { status, error, ...rest } = outcome;
    ctx.body = { isDelivered: error === undefined, ...rest, status: status ?? null, error: error ?? null };
  });

  answer<SmallJsonState>(SUBSCRIPTIONS.redeliver, async (ctx) => {
    noStore(ctx);
    const { id } = await foundBy(nameOf(ctx));
    ctx.status = 202;
    ctx.body = { registries: await options.redeliver(id, selectionOf(ctx.state.body)) };
  });

  answer<QueryOf<typeof SUBSCRIPTIONS.listDeliveries>>(SUBSCRIPTIONS.listDeliveries, async (ctx) => {
    noStore(ctx);
    const { id } = await foundBy(nameOf(ctx));
    const { token, ...query } = ctx.state.query;
    const { deliveries, next } = await options.deliveries({ ...query, subscription: id, tokenId: token });
    if (next) linkNextPage(ctx, `${next.event}.${next.channel}`);
    ctx.body = deliveries.map(({ nextAttemptAt, ...one }) => ({
      ...one,
      nextAttemptAt: nextAttemptAt === null ? null : new Date(nextAttemptAt).toISOString(),
    }));
  });
}

function nameOf({ params: { id = '' } }: { params: Record<string, string> }): string {
  return id;
}

/** The body of PUT /subscriptions/default: `{"config": {"state": "active" | "paused"}}`. */
function stateOf(body: Readonly<Record<string, unknown>>): 'active' | 'paused' {
  const { data } = STATE_OF_DEFAULT.safeParse(body);
  if (data !== undefined) return data.config.state;
  throw inSettings('Only its state can be set here: send {"config": {"state": "active"}} or "paused".');
}

function inSettings(remedy: string): HttpError {
  const message = `The subscription default is made of WEBHOOK_URL and service.config.json. ${remedy}`;
  return new HttpError(409, 'SUBSCRIPTION_IN_SETTINGS', message);
}

function unknown(name: string): HttpError {
  return new HttpError(404, 'SUBSCRIPTION_UNKNOWN', `There is no subscription ${name.slice(0, 64)}.`);
}

function selectionOf(body: unknown): Selection {
  const { data } = REDELIVERY_REQUEST.safeParse(body);
  if (data === undefined) {
    const message =
      'The body must have one member: {"event": "<id>"}, {"dead": true} or {"fromBlock": <number>}.';
    throw new HttpError(400, 'REDELIVERY_INVALID', message);
  }
  return 'event' in data ? { eventId: data.event } : data;
}
