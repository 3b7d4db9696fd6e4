import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../base/published-files';
import type { RpcClient } from '../chain/rpc-client';
import type { Config } from '../config/config';
import { createAnswers } from '../console/answers';
import { createCheckingPool } from '../console/checking-pool';
import type { Console } from '../console/console';
import { factsOf } from '../console/facts';
import { createOverview } from '../console/overview';
import { startSamples } from '../console/samples';
import { createSessions } from '../console/sessions';
import type { Database } from '../database/database';
import { movedSince } from '../outbox/changes';
import { subscriptionsHealth } from '../subscriptions/subscription-health';
import type { EventDelivery, EventDeliveryObserver } from './event-delivery';
import { confirmationsOf, type Issuing } from './issuing';
import type { Observing } from './observing';
import { healthQueryOf } from './subscribing';

/** The console with what the composition needs of it. */
export interface OperatorConsole extends Console {
  /** Ends the checks under way, which would keep the server open. */
  stop(this: void): Promise<void>;
}

/** The parts of the service that the console shows. */
export interface ConsoleParts {
  client: RpcClient;
  database: Database;
  issuing: Issuing;
  eventDelivery: EventDelivery;
  observing: Observing;
  attempts: AttemptCounter;
  clock: Clock;
}

/** Deliveries that fail for this long are shown, long before the subscription counts as failing. */
const SLOW_AFTER_MS = 60_000;

/** Starts the console. Undefined without ADMIN_API_KEY. */
export function startConsole(config: Config, parts: ConsoleParts): OperatorConsole | undefined {
  const { adminApiKey, consoleReadKey: readKey, network } = config;
  if (adminApiKey === undefined) return undefined;
  const { client, database, issuing, eventDelivery, observing, attempts, clock } = parts;
  const { db } = database;
  const samples = startSamples(() => eventDelivery.feeds, clock);
  attempts.onDelivered = samples.delivered;
  const missing = 'missing' in issuing.issuer ? issuing.issuer.missing : [];
  const overview = createOverview({
    clock,
    currency: network.currency,
    missing,
    feeds: () => eventDelivery.feeds,
    figures: observing.reports.outboxes,
    issuing: observing.reports.issuing,
    unfollowed: observing.reports.unfollowed,
    failingBefore: () => clock.now() - config.subscriptionFailingAfterMinutes * 60_000,
    async subscriptions() {
      const query = await healthQueryOf(config, db, clock.now());
      return subscriptionsHealth(db, { ...query, failingBefore: clock.now() - SLOW_AFTER_MS });
    },
    moved: async () => `${attempts.count} ${await movedSince(db)}`,
    plots: samples.plots,
  });
  const checking = createCheckingPool({
    contextUrl: config.billOfLadingContextUrl ?? TRUSTVC_BILL_OF_LADING_CONTEXT_URL,
    rules: { allowPrivate: config.allowPrivateSinks, allowLoopback: network.local },
  });
  return {
    ...createAnswers({
      config,
      database,
      feeds: () => eventDelivery.feeds,
      scope: issuing.watched?.scope,
      checking,
      clock,
    }),
    sessions: createSessions({ adminApiKey, readKey }, { clock, randomBytes }),
    overview,
    facts: () =>
      factsOf(config, { confirmations: confirmationsOf(config), canIssue: missing.length === 0, client }),
    async stop() {
      samples.stop();
      await checking.stop();
    },
  };
}

/** Counts attempts for the console, which is started after event delivery. */
export interface AttemptCounter extends Pick<EventDeliveryObserver, 'attempted'> {
  readonly count: number;
  onDelivered: () => void;
}

export function createAttemptCounter(): AttemptCounter {
  let count = 0;
  return {
    get count() {
      return count;
    },
    onDelivered: () => undefined,
    attempted(_registry, outcome) {
      count++;
      if (outcome === 'delivered') this.onDelivered();
    },
  };
}
