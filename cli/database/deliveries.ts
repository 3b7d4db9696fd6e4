import { undeliveredView } from '../../service/answers/delivery-views';
import { UNDELIVERED_STATE, type Undelivered } from '../../service/answers/views';
import { systemTime } from '../../service/base/time';
import { ConfigurationError } from '../../service/base/errors';
import { channelKeysOf, channelsOf, DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import {
  deliveriesOfEvent,
  listDeliveries,
  UNDELIVERED_STATES,
  type Delivery,
  type Place,
} from '../../service/outbox/deliveries';
import { OPERATIONS } from '../../service/events/conditions';
import { findDeliveredFeeds, findFeeds, registryOfFeed } from '../../service/outbox/feeds';
import { purgedUpTo } from '../../service/outbox/purge-events';
import { redeliver, type Selection } from '../../service/outbox/redeliver';
import {
  listDeadLetters,
  listOrphans,
  listWaiting,
  type DeadLetter,
  type Orphan,
  type WaitingDelivery,
} from '../../service/outbox/undelivered';
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

const MOST_WAITING = 50;

/** Shows the waiting deliveries or, with an option, dead letters, orphaned events or one event. */
export async function showDeliveries(options: ShowDeliveriesOptions): Promise<Answer> {
  const { dead, orphaned, event } = options;
  if ([dead, orphaned, event].filter((given) => given !== undefined).length > 1)
    throw invalid('Give one of --dead, --orphaned and --event.');
  return withDatabase(async ({ db }) => {
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
    const feeds = await findDeliveredFeeds(db, storedRegistryOf(options.registry));
    if (dead) return listed(await listDeadLetters(db, feeds), deadLine, 'no dead letters');
    if (orphaned) return listed(await listOrphans(db, feeds), orphanLine, 'no orphaned events');
    return listed(await listWaiting(db, feeds, MOST_WAITING), waitingLine, 'no deliveries are waiting');
  });
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
    json: entries.map(withBody),
    isJsonLines: true,
    isYes: true,
  };
}

/** Gives the stored body as an object instead of a string. */
function withBody(entry: object): object {
  const { body, ...rest } = entry as { body?: string };
  return { ...rest, ...(body !== undefined && { body: JSON.parse(body) as unknown }) };
}

function deadLine(letter: DeadLetter): string {
  const { diedAt, eventId, type, tokenId, attempts, error, registry, subscription } = letter;
  return (
    `${timeOf(diedAt)}  ${eventId}  ${type}  token ${tokenId}  ` +
    `${attempts} attempts, the last: ${error}  ${registry}${toOther(subscription)}`
  );
}

function orphanLine({ orphanedAt, eventId, outcome, blockNumber, minedAgainIn, registry }: Orphan): string {
  const since = minedAgainIn === null ? 'not mined again' : `mined again in block ${minedAgainIn}`;
  return `${timeOf(orphanedAt)}  ${eventId}  ${outcome} from block ${blockNumber}, ${since}  ${registry}`;
}

function waitingLine(delivery: WaitingDelivery): string {
  const { eventId, type, tokenId, waiting, attempts, nextAttemptAt, subscription } = delivery;
  const next = nextAttemptAt === null ? '' : `, next ${timeOf(nextAttemptAt)}`;
  return (
    `${eventId}  ${type}  token ${tokenId}  ` +
    `${waiting} waiting, ${attempts} attempts${next}${toOther(subscription)}`
  );
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
function toOther(subscription: string): string {
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
  return withDatabase(async ({ db }) => {
    const feeds = await findDeliveredFeeds(db);
    if ((await channelKeysOf(db, feeds, subscription)).length === 0) throw unknownSubscription(subscription);
    const all: Undelivered[] = [];
    let after: Place | undefined;
    do {
      const page = await listDeliveries(db, {
        subscription,
        states: wanted ? [wanted] : UNDELIVERED_STATES,
        tokenId,
        after,
        limit: Math.min(PAGE, limit - all.length),
      });
      all.push(...page.deliveries.map(undeliveredView));
      after = page.next;
    } while (after !== undefined && all.length < limit);
    const lines = all.map(({ id, type, error, attempts, ...one }) => {
      const last = error === null ? '' : `, the last: ${error}`;
      return `${id}  ${type}  token ${one.tokenId}  ${one.state}, ${attempts} attempts${last}`;
    });
    return { lines: lines.length > 0 ? lines : ['nothing waits'], json: all, isYes: true };
  });
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
export async function sendAgain({ registry, subscription, ...selected }: RedeliverOptions): Promise<Answer> {
  const selection = selectionOf(selected);
  return withDatabase(async (database) => {
    const { db } = database;
    // Operational events are of no block.
    const find = 'fromBlock' in selection ? findFeeds : findDeliveredFeeds;
    const feeds = await find(db, storedRegistryOf(registry));
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
    const lines: string[] = [];
    const registries: object[] = [];
    for (const feed of feeds) {
      const [channel] = await channelsOf(db, feed, subscription);
      if (channel === undefined && feed === OPERATIONS) continue;
      if (channel === undefined) throw unknownSubscription(subscription);
      const { enqueued, waiting } = await redeliver(database, channel, selection, systemTime.now());
      const removedUpTo = (await purgedUpTo(db, feed)) ?? -1;
      const isPurged = 'fromBlock' in selection && selection.fromBlock <= removedUpTo;
      const name = registryOfFeed(feed);
      const already = waiting > 0 ? `, ${waiting} waiting already` : '';
      if (enqueued + waiting > 0) lines.push(`${name}: ${enqueued} queued${already}`);
      if (isPurged) lines.push(`${name}: old events of blocks up to ${removedUpTo} were removed before`);
      registries.push({
        registry: name,
        queued: enqueued,
        alreadyWaiting: waiting,
        // The last block of the selection whose events were removed.
        purgedUpTo: isPurged ? removedUpTo : null,
      });
    }
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
