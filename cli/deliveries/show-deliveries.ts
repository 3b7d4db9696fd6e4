import { isAddress } from 'ethers';
import { loadConfig } from '../../service/config/config';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { ConfigurationError } from '../../service/base/errors';
import { DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import { findFeeds } from '../../service/outbox/find-feeds';
import { deliveriesOfEvent, type Delivery } from '../../service/outbox/deliveries';
import {
  listDeadLetters,
  listOrphans,
  listWaiting,
  type DeadLetter,
  type Orphan,
  type WaitingDelivery,
} from '../../service/outbox/undelivered';

/** Selects the deliveries to show and the format. */
export interface ShowOptions {
  dead: boolean;
  orphaned: boolean;
  event: string | undefined;
  registry: string | undefined;
  json: boolean;
}

/** An event in one subscription. */
interface EventHistory extends Omit<Delivery, 'nextAttemptAt'> {
  registry: string;
  eventId: string;
  body: string;
}

const MOST_WAITING = 50;

/** Reads the outbox and returns the lines to print. The service may be running. */
export async function showDeliveries(options: ShowOptions): Promise<string[]> {
  const { dead, orphaned, event, json } = options;
  if ([dead, orphaned, event !== undefined].filter(Boolean).length > 1)
    throw invalid('Give one of --dead, --orphaned and --event.');
  const database = await openDatabaseBesideService(loadConfig());
  try {
    const { db } = database;
    if (event !== undefined) {
      const events = await deliveriesOfEvent(db, event);
      const histories = events.flatMap(({ registry, eventId, body, deliveries }) =>
        deliveries.map(({ subscription, state, attempts }): EventHistory => {
          return { registry, subscription, eventId, state, body, attempts };
        }),
      );
      if (histories.length === 0) throw unknownEvent(event);
      return histories.flatMap((history) => (json ? jsonOf(history) : historyLines(history)));
    }
    const feeds = await findFeeds(db, registryOf(options.registry));
    if (dead) {
      const letters = await listDeadLetters(db, feeds);
      return lines(letters, json, deadLine, 'no dead letters');
    }
    if (orphaned) {
      const orphans = await listOrphans(db, feeds);
      return lines(orphans, json, orphanLine, 'no orphaned events');
    }
    const waiting = await listWaiting(db, feeds, MOST_WAITING);
    return lines(waiting, json, waitingLine, 'no deliveries are waiting');
  } finally {
    await database.close();
  }
}

/**
 * Normalises `--registry`: an address, or a chain id and an address if the same address is on several chains.
 */
export function registryOf(text: string | undefined): string | undefined {
  if (text === undefined || isAddress(text.replace(/^\d+:/, ''))) return text;
  throw invalid(
    `--registry ${String(text)} is not an address: 0x and 40 hexadecimal digits, ` +
      'or a chain id, a colon and an address.',
  );
}

/** The error for arguments that make no sense. */
export function invalid(message: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', message);
}

/** The error for an event that is not in the database. */
export function unknownEvent(event: string): ConfigurationError {
  const remedy =
    'Give the `id` of a CloudEvent; check DATA_DIR or DATABASE_URL too. Old events may have been removed.';
  return new ConfigurationError('EVENT_UNKNOWN', `There is no event ${event}.`, { remedy });
}

/** The error for a subscription that is not in the database. */
export function unknownSubscription(name: string): ConfigurationError {
  const remedy = 'List the subscriptions with `npx tdoc subscriptions list`.';
  return new ConfigurationError('SUBSCRIPTION_UNKNOWN', `There is no subscription ${name}. ${remedy}`, {
    remedy,
  });
}

function lines<T extends object>(
  entries: readonly T[],
  json: boolean,
  line: (entry: T) => string,
  nothing: string,
): string[] {
  if (json) return entries.map(jsonOf);
  return entries.length === 0 ? [nothing] : entries.map(line);
}

/** Prints the stored body as an object instead of a string. */
function jsonOf(entry: object): string {
  const { body, ...rest } = entry as { body?: string };
  return JSON.stringify({ ...rest, ...(body !== undefined && { body: JSON.parse(body) as unknown }) });
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
