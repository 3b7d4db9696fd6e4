import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { v7 as uuidV7 } from 'uuid';
import { type Clock, systemClock } from '../base/clock';
import { connectionLimitsFor, creatingAtOnce, readOpenFilesLimit } from '../base/connection-limits';
import { ChainError } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl, secretMasker } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { toldIfSlow } from '../base/told-if-slow';
import { createChainCheck, createRpcClient } from '../chain/rpc-client';
import type { Config } from '../config/config';
import { openIssuingWarning } from '../config/warnings';
import type { Database } from '../database/database';
import { openDatabase } from '../database/open-database';
import { createDeliverySlots } from '../delivery/delivery-slots';
import { type EventDelivery, startEventDelivery } from './event-delivery';
import { createRegistries, type Registries } from '../followed-registries/registries';
import { readRegistries } from '../followed-registries/stored-registries';
import { createHttpApp } from '../http/app';
import type { SubscriptionRoutes } from '../http/routes/subscriptions';
import { listen } from '../http/server';
import { openTunnel, type Tunnel, type TunnelOptions } from '../http/tunnel';
import { createAcceptDocument } from '../issuance/issue-document';
import { type Issuing, startIssuing } from './issuing';
import type { MintTiming } from '../minting/queue-parts';
import { createMetrics } from '../observability/metrics';
import { createMintOutcomes } from '../observability/mint-outcomes';
import { type Observing, type ObservingParts, startObserving } from './observing';
import { createAttemptCounter, type OperatorConsole, startConsole } from './operator-console';
import { startRetention } from './retention';
import { createSubscribing, type SubscribingParts } from './subscribing';

/** The running service. */
export interface App {
  url: string;
  /** Finishes requests and deliveries in flight and closes everything. */
  stop(): Promise<void>;
}

/**
 * Parts that tests replace: the tunnel's library and time limit, the clock and the name lookup of event
 * delivery, and the times of minting, of the contradiction check, and between two log lines about a catch-up.
 */
export type ReplacedParts = Partial<Pick<TunnelOptions, 'load' | 'openWithinMs'>> & {
  mintTiming?: Partial<MintTiming>;
  checkTiming?: ObservingParts['timing'];
  progressEveryMs?: number;
  deliveryClock?: Clock;
  consoleClock?: Clock;
  lookup?: SubscribingParts['lookup'];
};

/**
 * The composition root. It starts issuing and event delivery, which meet only on the chain, and the
 * observation of both.
 *
 * @throws ConfigurationError when the configuration cannot work: the node belongs to another chain, or the
 *   port or the database is taken.
 */
export async function startApp(config: Config, logger: Logger, replaced: ReplacedParts = {}): Promise<App> {
  const client = createRpcClient(config.rpcUrl, config.network);
  const checkChain = createChainCheck(client, config.rpcUrl, config.network);
  const waitFor = <T>(what: string, work: Promise<T>): Promise<T> =>
    toldIfSlow(work, () => logger.warn(`still starting: waiting for ${what}`));
  const node = `the node at ${printableUrl(config.rpcUrl)} to report its chain id`;
  await waitFor(node, checkChain()).catch((error: unknown) => {
    if (!(error instanceof ChainError)) throw error;
    logger.warn({ error }, error.message);
  });
  // Parts are closed in reverse order, at a stop and when the start fails.
  const open: (() => unknown)[] = [() => client.destroy()];
  const close = async (): Promise<void> => {
    for (const one of open.splice(0).reverse()) await one();
  };
  try {
    const metrics = createMetrics();
    const database = await waitFor('the database', openDatabase(config, logger));
    open.push(() => database.close());
    const attempts = createAttemptCounter();
    const outcomes = createMintOutcomes(metrics, systemClock);
    const { mintTiming, checkTiming: timing = {} } = replaced;
    const issuingParts = { client, checkChain, database, observer: outcomes, logger, mintTiming };
    const issuing = await waitFor('the threads that sign', startIssuing(config, issuingParts));
    open.push(() => issuing.stop());
    const { progressEveryMs, deliveryClock: clock = systemClock, lookup } = replaced;
    const subscribing = createSubscribing(config, { database, clock, logger, ...(lookup && { lookup }) });
    const stored = await readRegistries(database.db);
    const { signingThreads } = config;
    const needs = { signingThreads, registries: config.registries.length + stored.length };
    const limits = connectionLimitsFor(needs, readOpenFilesLimit());
    const eventDelivery = await startEventDelivery(config, {
      database,
      slots: createDeliverySlots({ most: limits.deliveries, logger }),
      targetOf: subscribing.targetOf,
      clock,
      observer: {
        recorded: (registry, events) => metrics.recorded(registry, events),
        attempted(registry, outcome) {
          metrics.attempted(registry, outcome);
          attempts.attempted(registry, outcome);
        },
      },
      logger,
      progressEveryMs,
    });
    const retention = startRetentions(config, { issuing, eventDelivery, logger });
    open.push(() => Promise.all([eventDelivery.stop(), retention.stop()]));
    const lines = { issuing, eventDelivery, subscribing };
    const observing = startObserving(config, { ...lines, database, metrics, outcomes, logger, timing });
    open.push(() => observing.stop());
    const { consoleClock = systemClock } = replaced;
    const console = startConsole(config, {
      ...lines,
      client,
      database,
      observing,
      attempts,
      clock: consoleClock,
    });
    open.push(() => console?.stop());
    const subscriptions = subscribing.routes(eventDelivery);
    const registries = registriesOf(config, { database, eventDelivery });
    const parts = {
      issuing,
      observing,
      subscriptions,
      registries,
      console,
      logger,
      callers: limits.callers,
      isDatabaseRemoved: () => database.isRemoved(),
    };
    const handler = httpHandler(config, parts);
    const server = await listen(handler, config.host, config.port, {
      connections: { most: limits.callers, logger },
    });
    const isIssuing = !('missing' in issuing.issuer);
    const warning = isIssuing ? openIssuingWarning(config, server.url) : undefined;
    if (warning) logger[warning.level](warning.message);
    const publicEnd = tunnelTo(server.url, config, logger, replaced);
    return {
      url: server.url,
      async stop() {
        // Requests through the tunnel are answered before it closes. Deliveries stop at the same time.
        const closed = server.close().finally(() => publicEnd?.close());
        await Promise.all([closed, eventDelivery.stop(), console?.stop()]);
        await close();
      },
    };
  } catch (cause) {
    await close();
    throw cause;
  }
}

/** Removes old documents and events. */
function startRetentions(
  { documentRetentionDays, eventRetentionDays }: Config,
  { issuing, eventDelivery, logger }: { issuing: Issuing; eventDelivery: EventDelivery; logger: Logger },
): { stop(): Promise<unknown> } {
  const { journal } = issuing;
  const shared = { clock: systemClock, logger };
  const documents = journal && {
    what: 'issued documents',
    purge: (before: number, signal: AbortSignal) => journal.purge(before, signal),
    days: documentRetentionDays,
  };
  const events = { what: 'old events', purge: eventDelivery.purge, days: eventRetentionDays };
  const started = [documents, events].flatMap((one) => (one ? startRetention({ ...one, ...shared }) : []));
  return { stop: () => Promise.all(started.map((one) => one.stop())) };
}

/** The tunnel of TUNNEL_AUTHTOKEN; undefined without it. */
function tunnelTo(
  localUrl: string,
  { domain, tunnelAuthtoken: authtoken }: Config,
  logger: Logger,
  { load, openWithinMs }: ReplacedParts,
): Tunnel | undefined {
  if (authtoken === undefined) return undefined;
  return openTunnel({ localUrl, domain, authtoken, logger, load, openWithinMs });
}

function registriesOf(
  settings: Config,
  { database, eventDelivery }: { database: Database; eventDelivery: EventDelivery },
): Registries {
  const named = (name: RegistryName) =>
    eventDelivery.feeds.find(({ chainId, registry }) => registryName(chainId, registry) === name);
  return createRegistries({
    database,
    settings,
    clock: systemClock,
    statusOf: (name) => named(name)?.status,
    onChange: () => eventDelivery.refresh(),
  });
}

/** http → issuance → minting → chain. */
function httpHandler(
  config: Config,
  parts: {
    issuing: Issuing;
    observing: Observing;
    subscriptions: SubscriptionRoutes | undefined;
    registries: Registries;
    console: OperatorConsole | undefined;
    logger: Logger;
    callers: number;
    isDatabaseRemoved: () => boolean;
  },
): RequestListener {
  const { logger } = parts;
  const { issuer, journal } = parts.issuing;
  const { health, metrics } = parts.observing;
  if ('missing' in issuer) {
    logger.warn(
      { missing: issuer.missing },
      `documents cannot be issued: ${issuer.missing.join(', ')} not configured`,
    );
  }
  const app = createHttpApp({
    acceptDocument: createAcceptDocument(issuer, systemClock, uuidV7),
    didDocumentPath: config.didDocumentPath,
    domain: config.domain,
    signingKeys: config.signingKeys,
    apiKey: config.apiKey,
    adminApiKey: config.adminApiKey,
    registries: parts.registries,
    development: config.development,
    logger,
    mask: secretMasker(config.secrets),
    newId: randomUUID,
    health,
    metrics,
    issuedDocuments: journal,
    subscriptions: parts.subscriptions,
    console: parts.console,
    isDatabaseRemoved: parts.isDatabaseRemoved,
    callersAtOnce: creatingAtOnce(parts.callers),
    bodyLimits: { large: { permits: config.largeBodiesAtOnce } },
  });
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}
