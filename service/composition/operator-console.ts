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
import type { EventDelivery } from './event-delivery';
import { confirmationsOf, type Issuing } from './issuing';
import type { Observing } from './observing';
import { healthQueryOf } from './subscribing';

/** The console with what the composition needs of it. */
export interface OperatorConsole extends Console {
  /** Counts an attempt to deliver. */
  attempted(this: void, outcome: 'delivered' | 'failed' | 'dead'): void;
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
  clock: Clock;
}

/** Deliveries that fail for this long are shown, long before the subscription counts as failing. */
const SLOW_AFTER_MS = 60_000;
/** The overview does not wait: it shows the last report until this one arrives. */
const REPORT_WITHIN_MS = 60_000;

/** Starts the console. Undefined without ADMIN_API_KEY. */
export function startConsole(config: Config, parts: ConsoleParts): OperatorConsole | undefined {
  const { adminApiKey, consoleReadKey: readKey, network } = config;
  if (adminApiKey === undefined) return undefined;
  const { client, database, issuing, eventDelivery, observing, clock } = parts;
  const { db } = database;
  const feeds = (): EventDelivery['feeds'] => eventDelivery.feeds;
  const samples = startSamples(feeds, clock);
  const missing = 'missing' in issuing.issuer ? issuing.issuer.missing : [];
  let attempts = 0;
  const overview = createOverview({
    clock,
    currency: network.currency,
    missing,
    feeds,
    figures: eventDelivery.figures,
    issuing: () => observing.issuing(REPORT_WITHIN_MS),
    unfollowed: observing.unfollowed,
    failingBefore: () => clock.now() - config.subscriptionFailingAfterMinutes * 60_000,
    async subscriptions() {
      const query = await healthQueryOf(config, db, clock.now());
      return subscriptionsHealth(db, { ...query, failingBefore: clock.now() - SLOW_AFTER_MS });
    },
    moved: async () => `${attempts} ${await movedSince(db)}`,
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
      feedOf: eventDelivery.feedOf,
      targetOf: (name, channel) =>
        feeds()
          .find(({ opened }) => opened === name)
          ?.targetOf(channel),
      scope: issuing.watched?.scope,
      checking,
      clock,
    }),
    sessions: createSessions({ adminApiKey, readKey }, { clock, randomBytes }),
    overview,
    facts: () =>
      factsOf(config, { confirmations: confirmationsOf(config), canIssue: missing.length === 0, client }),
    attempted(outcome) {
      attempts++;
      if (outcome === 'delivered') samples.delivered();
    },
    async stop() {
      samples.stop();
      await checking.stop();
    },
  };
}
