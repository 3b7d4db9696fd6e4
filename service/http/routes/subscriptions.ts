import type { Context } from 'koa';
import { RequestError } from '../../base/errors';
import type { Holder } from '../../access/access-keys';
import { undeliveredView } from '../../answers/delivery-views';
import { UNDELIVERED_STATES, type DeliveriesPage, type DeliveriesWanted } from '../../outbox/deliveries';
import type { Redelivered, Selection } from '../../outbox/enqueue-stored';
import type { EventFetching, Selecting } from '../../subscriptions/fetch-events';
import type { Subscriptions } from '../../subscriptions/manage-subscriptions';
import { forReaders, type Subscription } from '../../subscriptions/subscription';
import { DELIVERIES } from '../description/deliveries';
import { REDELIVERY_REQUEST, SUBSCRIPTIONS } from '../description/subscriptions';
import type { LimitCaller } from '../limits';
import type { RequestState } from '../request-log';
import { linkNextPage, wrongQuery, type OperationRouter } from '../operation-router';

/** The parts that the paths under /subscriptions need, and the path of clients that fetch. */
export interface SubscriptionRoutes {
  /** Those of a holder, or all. */
  subscriptionsFor(holder: Holder | undefined): Subscriptions;
  deliveries(wanted: DeliveriesWanted): Promise<DeliveriesPage>;
  redeliver(name: string, selection: Selection): Promise<readonly Redelivered[]>;
  fetchEvents: EventFetching['fetch'];
}

/** Answers the operations of subscriptions. */
export function answerSubscriptions(
  { answer }: OperationRouter,
  options: SubscriptionRoutes,
  limitCaller: LimitCaller,
): void {
  const subscriptionsFor = (ctx: Context): Subscriptions =>
    options.subscriptionsFor((ctx.state as RequestState).holder);

  const shownTo = (ctx: Context, found: Subscription): Subscription =>
    (ctx.state as RequestState).role === 'reader' ? forReaders(found) : found;

  answer(SUBSCRIPTIONS.listSubscriptions, async (ctx) => {
    const page = await subscriptionsFor(ctx).list(ctx.state.query);
    if (page === undefined)
      throw wrongQuery('after', 'names no subscription: it was deleted. Begin with the first page');
    if (page.next !== undefined) linkNextPage(ctx, page.next);
    ctx.body = page.subscriptions.map((one) => shownTo(ctx, one));
  });

  answer(SUBSCRIPTIONS.createSubscription, async (ctx) => {
    const added = await subscriptionsFor(ctx).add(ctx.state.body);
    ctx.status = 201;
    ctx.set('Location', `${SUBSCRIPTIONS.createSubscription.path}/${added.id}`);
    ctx.body = added;
  });

  answer(SUBSCRIPTIONS.getSubscription, async (ctx) => {
    ctx.body = shownTo(ctx, await subscriptionsFor(ctx).show(nameOf(ctx)));
  });

  answer(SUBSCRIPTIONS.replaceSubscription, async (ctx) => {
    ctx.body = await subscriptionsFor(ctx).replace(nameOf(ctx), ctx.state.body);
  });

  answer(SUBSCRIPTIONS.deleteSubscription, async (ctx) => {
    const isForced = ctx.state.query.force === 'true';
    const { undelivered, isRemoved, subscription } = await subscriptionsFor(ctx).remove(
      nameOf(ctx),
      isForced,
    );
    if (!isRemoved) {
      const message =
        `${undelivered} events are not delivered yet, and would be lost for this subscriber. ` +
        'Repeat the request with ?force=true to delete them with it.';
      throw new RequestError('SUBSCRIPTION_UNDELIVERED', message);
    }
    ctx.set('X-Undelivered', String(undelivered));
    ctx.body = subscription;
  });

  answer(SUBSCRIPTIONS.testSubscription, async (ctx) => {
    ctx.body = await subscriptionsFor(ctx).test(nameOf(ctx));
  });

  answer(SUBSCRIPTIONS.redeliver, async (ctx) => {
    const { id } = await subscriptionsFor(ctx).find(nameOf(ctx));
    ctx.status = 202;
    const registries = await options.redeliver(id, selectionOf(ctx.state.body));
    // A holder does not see which other registries are followed.
    const isShown = (one: Redelivered) => !ctx.state.holder || one.queued + one.alreadyWaiting > 0;
    ctx.body = { registries: registries.filter(isShown) };
  });

  answer(SUBSCRIPTIONS.listDeliveries, async (ctx) => {
    const { id } = await subscriptionsFor(ctx).find(nameOf(ctx));
    const { token: tokenId, state, ...query } = ctx.state.query;
    const states = state ? [state] : UNDELIVERED_STATES;
    const wanted = { ...query, states, subscription: id, tokenId };
    const own = ctx.state.holder && [id];
    const { deliveries, next } = await options.deliveries({ ...wanted, own });
    if (next) linkNextPage(ctx, next);
    ctx.body = deliveries.map(undeliveredView);
  });

  answer(DELIVERIES.streamEvents, async (ctx) => {
    const { left, query, holder } = ctx.state;
    const { subscription, source, types, tokens, parties, ...wanted } = query;
    const filters = [...(tokens ? [{ tokens }] : []), ...(parties ? [{ parties }] : [])];
    const rules = { source: source?.toLowerCase(), types, filters, scope: holder?.filters };
    const selecting: Selecting =
      subscription === undefined
        ? { ...rules, config: OF_NO_SUBSCRIPTION }
        : await subscriptionsFor(ctx).find(subscription);
    if (wanted.wait > 0) limitCaller(ctx);
    ctx.state.isRoutine = true;
    ctx.body = await options.fetchEvents(selecting, wanted, left);
  });
}

const OF_NO_SUBSCRIPTION = {
  startFrom: 'beginning',
  contentType: 'application/json',
  retractions: false,
} as const;

function nameOf({ params: { id = '' } }: { params: Record<string, string> }): string {
  return id;
}

function selectionOf(body: unknown): Selection {
  const { data } = REDELIVERY_REQUEST.safeParse(body);
  if (data === undefined) {
    const message =
      'The body must have one member: {"event": "<id>"}, {"dead": true} or {"fromBlock": <number>}.';
    throw new RequestError('REDELIVERY_INVALID', message);
  }
  return 'event' in data ? { eventId: data.event } : data;
}
