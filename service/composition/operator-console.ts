import { randomBytes } from 'node:crypto';
import { createAnswers } from '../answers/answers';
import { createCheckingPool } from '../answers/checking-pool';
import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../base/published-files';
import type { Chain } from '../chain/chain';
import type { Config } from '../config/config';
import { factsOf } from '../console/facts';
import { createOverview, startSamples } from '../console/overview';
import { createSessions } from '../console/sessions';
import type { Database } from '../database/database';
import { movedSince } from '../outbox/changes';
import { sinkRulesOf } from '../subscriptions/manage-subscriptions';
import { countSubscriptions } from '../subscriptions/stored-subscriptions';
import type { EventDelivery } from './event-delivery';
import { confirmationsOf, type Issuing } from './issuing';
import type { Observing } from './observing';

/** The answers to questions of programs and of the console. Undefined without a key: then nobody may ask. */
export function createAnswering(
  config: Config,
  parts: Pick<ConsoleParts, 'database' | 'issuing' | 'eventDelivery' | 'time'>,
) {
  const { database, issuing, eventDelivery, time } = parts;
  if (config.apiKey === undefined && config.adminApiKey === undefined) return undefined;
  const checking = createCheckingPool({
    time,
    contextUrl: config.billOfLadingContextUrl ?? TRUSTVC_BILL_OF_LADING_CONTEXT_URL,
    rules: sinkRulesOf(config),
  });
  const answers = createAnswers({
    config,
    db: database.db,
    feedOf: eventDelivery.feedOf,
    targetOf: (name, channel) => eventDelivery.feeds.find(({ opened }) => opened === name)?.targetOf(channel),
    scope: issuing.scope,
    checking,
    time,
  });
  /** The checks under way would keep the server open: they have to be stopped. */
  return { answers, checking };
}

/** The parts of the service that the console shows. */
export interface ConsoleParts {
  client: Chain;
  database: Database;
  issuing: Issuing;
  eventDelivery: EventDelivery;
  observing: Pick<Observing, 'conditions'>;
  answering: ReturnType<typeof createAnswering>;
  time: Time;
  lifecycle: Lifecycle;
}

/** The overview does not wait: it shows the last report until this one arrives. */
const REPORT_WITHIN_MS = 60_000;

/** Starts the console. Undefined without ADMIN_API_KEY. */
export function startConsole(config: Config, parts: ConsoleParts) {
  const { adminApiKey, consoleReadKey: readKey, network } = config;
  const { client, database, issuing, eventDelivery, observing, answering, time, lifecycle } = parts;
  if (adminApiKey === undefined || answering === undefined) return undefined;
  const { db } = database;
  const feeds = () => eventDelivery.feeds;
  const samples = startSamples(time, feeds);
  const missing = 'missing' in issuing.issuer ? issuing.issuer.missing : [];
  let attempts = 0;
  lifecycle.on('attempted', (_, outcome) => {
    attempts++;
    if (outcome === 'delivered') samples.delivered();
  });
  const overview = createOverview({
    time,
    currency: network.currency,
    missing,
    feeds,
    figures: eventDelivery.figures,
    issuing: () => issuing.report(REPORT_WITHIN_MS),
    conditions: observing.conditions,
    subscriptions: async () => countSubscriptions(config, db, await observing.conditions()),
    moved: async () => `${attempts} ${await movedSince(db)}`,
    plots: samples.plots,
  });
  const facts = {
    domain: config.domain,
    chainId: network.chainId,
    registry: config.tokenRegistryAddress,
    issuer: config.issuerKey?.controller,
    signingKeyId: config.signingKeys?.key.id,
  };
  return {
    validate: answering.checking.validate,
    progress: answering.answers.progress,
    sessions: createSessions({ adminApiKey, readKey }, facts, { clock: time, randomBytes }),
    overview,
    facts: () =>
      factsOf(config, { confirmations: confirmationsOf(config), canIssue: missing.length === 0, client }),
    stop: samples.stop,
  };
}
