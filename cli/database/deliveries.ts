import { undeliveredView } from '../../service/answers/delivery-views';
import { UNDELIVERED_STATE, type Undelivered } from '../../service/answers/views';
import { systemTime } from '../../service/base/time';
import { ConfigurationError } from '../../service/base/errors';
import type { Database } from '../../service/database/database';
import { channelKeysOf, DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import {
  deliveriesOfEvent,
  listDeliveries,
  UNDELIVERED_STATES,
  type DeliveriesWanted,
  type Delivery,
  type FoundDelivery,
  type Place,
} from '../../service/outbox/deliveries';
import { findDeliveredFeeds, findFeeds, registryOfFeed } from '../../service/outbox/feeds';
import { purgedUpTo } from '../../service/outbox/purge-events';
import { redeliverTo, type Selection } from '../../service/outbox/enqueue-stored';
import { listOrphans, type ListedOrphan } from '../../service/outbox/rewind-feed';
import type { Answer } from '../answer';
import { invalid } from '../errors';
import { storedRegistryOf, tokenIdOf, unknownSubscription, withDatabase } from './with-database';

/** The options of `tdoc deliveries`. */
export interface ShowDeliveriesOptions {
  dead?: true;
  orphaned?: true;
  event?: string;
  registry?: string;
}

/** Waiting deliveries that are shown. */
const MOST_SHOWN = 50;

/**
 * Shows the waiting deliveries, those that failed first; or, with an option, dead letters, orphaned events or
 * one event.
 */
export async function showDeliveries(options: ShowDeliveriesOptions): Promise<Answer> {
  const { dead, orphaned, event } = options;
  if ([dead, orphaned, event].filter((given) => given !== undefined).length > 1)
    throw invalid('Give one of --dead, --orphaned and --event.');
  return withDatabase(async (database) => {
    const { db } = database;
    if (event !== undefined) {
      const events = await deliveriesOfEvent(db, event);
      const histories = events.flatMap(({ registry, eventId, body, deliveries }) =>
        deliveries.map(({ subscription, state, attempts }): EventHistory => {
          return { registry, subscription, eventId, state, body, attempts };
        }),
      );
      if (histories.length === 0) throw unknownEvent(event);
      return listed(histories, historyLines, '');
    }
    const registry = storedRegistryOf(options.registry);
    if (orphaned) {
      const feeds = await findDeliveredFeeds(db, registry);
      return listed(await listOrphans(db, feeds), orphanLine, 'no orphaned events');
    }
    if (dead) {
      const letters = await findAll(database, { registry, states: ['dead'] });
      return listed(letters.map(withBody), undeliveredLine, 'no dead letters');
    }
    const failed = await findAll(database, { registry, states: ['failed'] }, MOST_SHOWN);
    const waiting = await findAll(database, { registry, states: ['waiting'] }, MOST_SHOWN);
    const shown = [...failed, ...waiting].slice(0, MOST_SHOWN);
    return listed(shown.map(withBody), undeliveredLine, 'no deliveries are waiting');
  });
}

/** An undelivered event with its body. */
function withBody(found: FoundDelivery): Undelivered & { subscription: string; body: string } {
  const { subscription } = found.delivery;
  return { ...undeliveredView(found), subscription, body: found.event.body };
}

/** An event in one subscription. */
interface EventHistory extends Omit<Delivery, 'channel' | 'nextAttemptAt'> {
  registry: string;
  eventId: string;
  body: string;
}

function listed<T extends object>(
  entries: readonly T[],
  linesOf: (entry: T) => string | string[],
  nothing: string,
): Answer {
  return {
    lines: entries.length === 0 ? [nothing] : entries.flatMap(linesOf),
    json: entries.map(withParsedBody),
    isJsonLines: true,
    isYes: true,
  };
}

/** Gives the stored body as an object instead of a string. */
function withParsedBody(entry: object): object {
  const { body, ...rest } = entry as { body?: string };
  return { ...rest, ...(body !== undefined && { body: JSON.parse(body) as unknown }) };
}

function orphanLine({
  orphanedAt,
  eventId,
  outcome,
  blockNumber,
  minedAgainIn,
  registry,
}: ListedOrphan): string {
  const since = minedAgainIn === null ? 'not mined again' : `mined again in block ${minedAgainIn}`;
  return `${timeOf(orphanedAt)}  ${eventId}  ${outcome} from block ${blockNumber}, ${since}  ${registry}`;
}

function undeliveredLine(one: Undelivered & { subscription?: string }): string {
  const { id, type, tokenId, state, attempts, error, nextAttemptAt, registry, subscription } = one;
  const last = error === null ? '' : `, the last: ${error}`;
  const next = nextAttemptAt === null ? '' : `, next ${nextAttemptAt}`;
  const counted = `${state}, ${attempts} attempts${last}${next}`;
  return `${id}  ${type}  token ${tokenId}  ${counted}  ${registry}${toOther(subscription)}`;
}

function historyLines({ registry, subscription, eventId, state, body, attempts }: EventHistory): string[] {
  const attemptLines = attempts.map(
    ({ attemptedAt, attempt, status, error, milliseconds }) =>
      `${timeOf(attemptedAt)}  attempt ${attempt}  ${status ?? 'no answer'}  ` +
      `${error ?? 'delivered'}  ${milliseconds} ms`,
  );
  return [`${eventId}  ${state}  ${registry}${toOther(subscription)}`, body, ...attemptLines];
}

/** Names a subscription other than the one of the settings. */
function toOther(subscription = DEFAULT_SUBSCRIPTION): string {
  return subscription === DEFAULT_SUBSCRIPTION ? '' : `  to ${subscription}`;
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** The options of `tdoc subscriptions deliveries`. */
export interface ListDeliveriesOptions {
  state?: string;
  token?: string;
  limit: number;
}

/** Deliveries per query. */
const PAGE = 500;

/** Lists the undelivered events of a subscription, up to a number. */
export async function listUndelivered(
  subscription: string,
  { state, token, limit }: ListDeliveriesOptions,
): Promise<Answer> {
  const { data: wanted, error: problem } = UNDELIVERED_STATE.optional().safeParse(state);
  if (problem) throw invalid(`--state ${problem.issues[0]?.message}.`);
  const tokenId = token === undefined ? undefined : tokenIdOf(token).toString();
  return withDatabase(async (database) => {
    const { db } = database;
    const feeds = await findDeliveredFeeds(db);
    if ((await channelKeysOf(db, feeds, [subscription])).length === 0)
      throw unknownSubscription(subscription);
    const states = wanted ? [wanted] : UNDELIVERED_STATES;
    const all = (await findAll(database, { subscription, states, tokenId }, limit)).map(undeliveredView);
    const lines = all.length > 0 ? all.map((one) => undeliveredLine(one)) : ['nothing waits'];
    return { lines, json: all, isYes: true };
  });
}

/** Finds deliveries on as many pages as it takes, those of the newest events first. */
async function findAll(
  { db }: Database,
  wanted: Omit<DeliveriesWanted, 'after' | 'limit'>,
  limit = Infinity,
): Promise<FoundDelivery[]> {
  const all: FoundDelivery[] = [];
  let after: Place | undefined;
  do {
    const page = await listDeliveries(db, { ...wanted, after, limit: Math.min(PAGE, limit - all.length) });
    all.push(...page.deliveries);
    after = page.next;
  } while (after !== undefined && all.length < limit);
  return all;
}

/** The options of `tdoc redeliver`. `subscription`: its id. */
export interface RedeliverOptions {
  event?: string;
  dead?: true;
  fromBlock?: number;
  registry?: string;
  subscription: string;
}

/** Queues events for delivery again. A running service sends them at once. */
export async function sendAgain({ subscription, ...options }: RedeliverOptions): Promise<Answer> {
  const selection = selectionOf(options);
  return withDatabase(async (database) => {
    const { db } = database;
    const registry = storedRegistryOf(options.registry);
    const feeds = await findFeeds(db, registry);
    if ('fromBlock' in selection && feeds.length > 1) {
      const names = feeds.map(registryOfFeed).join(', ');
      throw invalid(`--from-block needs a registry: give --registry with one of ${names}.`);
    }
    if ('eventId' in selection) {
      const { eventId } = selection;
      const events = await deliveriesOfEvent(db, eventId);
      const all = events.flatMap(({ deliveries }) => deliveries);
      const delivery = all.find((one) => one.subscription === subscription);
      if (delivery === undefined) throw unknownEvent(eventId);
      if (delivery.state === 'orphaned')
        throw invalid(`The block of event ${eventId} was orphaned: the event cannot be sent again.`);
    }
    const redelivered = await redeliverTo(database, { subscription, registry }, selection, systemTime.now());
    if (redelivered.length === 0 && feeds.length > 0) throw unknownSubscription(subscription);
    let removedUpTo: number | null = null;
    if ('fromBlock' in selection && feeds[0] !== undefined) {
      const last = (await purgedUpTo(db, feeds[0])) ?? -1;
      removedUpTo = selection.fromBlock <= last ? last : null;
    }
    const lines = redelivered.flatMap(({ registry: name, queued, alreadyWaiting }) => {
      const already = alreadyWaiting > 0 ? `, ${alreadyWaiting} waiting already` : '';
      const removed = `${name}: old events of blocks up to ${removedUpTo} were removed before`;
      return [
        ...(queued + alreadyWaiting > 0 ? [`${name}: ${queued} queued${already}`] : []),
        ...(removedUpTo === null ? [] : [removed]),
      ];
    });
    // The last block of the selection whose events were removed.
    const registries = redelivered.map((one) => ({ ...one, purgedUpTo: removedUpTo }));
    return {
      lines: lines.length === 0 ? ['nothing to send again'] : lines,
      json: { registries },
      isYes: true,
    };
  });
}

function selectionOf({ event, dead, fromBlock }: Omit<RedeliverOptions, 'subscription'>): Selection {
  if ([event, dead, fromBlock].filter((given) => given !== undefined).length !== 1)
    throw invalid('Give one of --event ID, --dead and --from-block N.');
  if (event !== undefined) return { eventId: event };
  return fromBlock === undefined ? { dead: true } : { fromBlock };
}

/** The error for an event that is not in the database. */
function unknownEvent(event: string): ConfigurationError {
  const remedy =
    'Give the `id` of a CloudEvent; check DATA_DIR or DATABASE_URL too. Old events may have been removed.';
  return new ConfigurationError('EVENT_UNKNOWN', `There is no event ${event}.`, { remedy });
}
