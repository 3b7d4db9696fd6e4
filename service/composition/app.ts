import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { v7 as uuidV7 } from 'uuid';
import { createLifecycle, type Lifecycle } from '../base/lifecycle';
import { systemTime, type Time } from '../base/time';
import { ChainError, messageOf, orUndefined } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl, secretMasker } from '../base/mask-secrets';
import { repeat, toldIfSlow } from '../base/waiting';
import { createFinalBlockReading } from '../chain/finality';
import { connectNodes } from '../chain/connect-nodes';
import type { Config } from '../config/config';
import { openIssuingWarning, otherFormsOf } from '../config/warnings';
import { openDatabase } from '../database/open-database';
import { createDeliverySlots } from '../delivery/delivery-slots';
import { startEventDelivery } from './event-delivery';
import { Registries } from '../followed-registries/registries';
import { readRegistries } from '../followed-registries/stored-registries';
import { createHttpApp } from '../http/app';
import { listen } from '../http/server';
import { openTunnel, type TunnelOptions } from '../http/tunnel';
import { createIssuing } from '../issuance/issue-document';
import { confirmationsOf, startIssuing } from './issuing';
import { createMetrics } from '../observability/metrics';
import { createMintOutcomes } from '../observability/issuing-report';
import { startObserving } from './observing';
import { createAnswering, startConsole } from './operator-console';
import { createSubscribing } from './subscribing';

/** Parts that tests replace. `lookup` finds the addresses of sinks, `load` the tunnel's library. */
export interface ReplacedParts {
  time?: Time;
  lifecycle?: Lifecycle;
  lookup?: LookupFunction;
  load?: TunnelOptions['load'];
}

/**
 * The composition root. It starts issuing and event delivery, which meet only on the chain, and the
 * observation of both.
 *
 * @throws ConfigurationError when the configuration cannot work: the node belongs to another chain or does
 *   not know the tag of CONFIRMATIONS, or the port or the database is taken.
 */
export async function startApp(
  config: Config,
  logger: Logger,
  { time = systemTime, lifecycle = createLifecycle(), lookup, load }: ReplacedParts = {},
) {
  const { client, checkChain, report } = connectNodes(config.rpcUrls, config.network, time, 'single', logger);
  const waitFor = <T>(what: string, work: Promise<T>): Promise<T> =>
    toldIfSlow(time, work, () => logger.warn(`still starting: waiting for ${what}`));
  const node = `the node at ${config.rpcUrls.map(printableUrl).join(', ')} to report its chain id`;
  const readFinalBlock = createFinalBlockReading(client, config.network, confirmationsOf(config));
  // Parts are closed in reverse order, at a stop and when the start fails.
  const open: (() => unknown)[] = [() => client.close()];
  const close = async (): Promise<void> => {
    for (const one of open.splice(0).reverse()) await one();
  };
  try {
    await waitFor(
      node,
      checkChain().then(() => readFinalBlock(0)),
    ).catch((error: unknown) => {
      if (!(error instanceof ChainError)) throw error;
      logger.warn({ error }, error.message);
    });
    const database = await waitFor('the database', openDatabase(time, config, logger));
    open.push(() => database.close());
    const metrics = createMetrics(lifecycle);
    const outcomes = createMintOutcomes(lifecycle, time);
    const issuing = await waitFor(
      'the threads that sign',
      startIssuing(config, {
        client,
        checkChain,
        nodes: report,
        database,
        outcomes,
        time,
        lifecycle,
        logger,
      }),
    );
    open.push(() => issuing.stop());

    const subscribing = createSubscribing(config, { database, time, logger, lookup });
    const stored = await readRegistries(database.db);
    const registries = config.registries.length + stored.length;
    const connections = mostConnections({ ...config, registries }, readOpenFilesLimit());
    const eventDelivery = await startEventDelivery(config, {
      database,
      slots: createDeliverySlots({ most: connections, time, logger }),
      targetOf: subscribing.targetOf,
      time,
      lifecycle,
      logger,
    });
    open.push(() => eventDelivery.stop());

    const { issuer, journal } = issuing;
    const documents = journal && {
      what: 'issued documents',
      purge: (before: number, signal: AbortSignal) => journal.purge(before, signal),
      days: config.documentRetentionDays,
    };
    const events = { what: 'old events', purge: eventDelivery.purge, days: config.eventRetentionDays };
    for (const removed of [documents, events]) {
      const retention = removed && startRetention({ ...removed, time, logger });
      open.push(() => retention?.stop());
    }

    const lines = { database, issuing, eventDelivery };
    const observing = startObserving(config, { ...lines, time, metrics, outcomes, lifecycle, logger });
    open.push(() => observing.stop());
    const answering = createAnswering(config, { ...lines, time });
    open.push(() => answering?.checking.stop());
    const console = startConsole(config, { ...lines, client, observing, answering, time, lifecycle });
    open.push(() => console?.stop());

    if ('missing' in issuer) {
      const { missing } = issuer;
      const problem = `documents cannot be issued: ${missing.join(', ')} not configured.`;
      logger.warn({ missing }, `${problem}${otherFormsOf(missing)}`);
    }
    const app = createHttpApp({
      issuing: createIssuing(issuer, uuidV7),
      didDocumentPath: config.didDocumentPath,
      domain: config.domain,
      signingKeys: config.signingKeys,
      apiKey: config.apiKey,
      adminApiKey: config.adminApiKey,
      registries: new Registries({
        database,
        settings: config,
        time,
        statusOf: (name) => eventDelivery.feedOf(name)?.status,
        onChange: eventDelivery.refresh,
      }),
      development: config.development,
      logger,
      mask: secretMasker(config.secrets),
      newId: randomUUID,
      health: observing.health,
      metrics: observing.metrics,
      issuedDocuments: journal,
      subscriptions: subscribing.routes(eventDelivery),
      answers: answering?.answers,
      console,
      time,
      isDatabaseRemoved: () => database.isRemoved(),
      callersAtOnce: creatingAtOnce(connections),
      bodyLimits: { large: { permits: config.largeBodiesAtOnce } },
    });
    const handle = app.callback();
    const server = await listen(
      (request, response) => void handle(request, response),
      config.host,
      config.port,
      { time, connections: { most: connections, logger } },
    );
    const warning = 'missing' in issuer ? undefined : openIssuingWarning(config, server.url);
    if (warning) logger[warning.level](warning.message);
    const { domain, tunnelAuthtoken: authtoken } = config;
    const tunnel =
      authtoken === undefined
        ? undefined
        : openTunnel({ localUrl: server.url, domain, authtoken, time, logger, load });
    return {
      url: server.url,
      /** Finishes requests and deliveries in flight and closes everything. */
      async stop(): Promise<void> {
        // Requests through the tunnel are answered before it closes. Deliveries stop at the same time.
        const closed = server.close().finally(() => tunnel?.close());
        await Promise.all([closed, eventDelivery.stop(), answering?.checking.stop()]);
        await close();
      },
    };
  } catch (cause) {
    await close();
    throw cause;
  }
}

/** Descriptors of the database, files, the standard streams and Node.js itself, with a reserve. */
const OF_THE_PROCESS = 48;
const OF_A_THREAD = 4;
/** Descriptors of the connections to one registry's node. */
const OF_A_REGISTRY = 16;
const LEAST_CONNECTIONS = 16;
/** More connections would take memory that requests need. */
const MOST_CONNECTIONS = 10_000;

/**
 * Divides the descriptors of the process, so that none of its parts lacks one. Callers of the HTTP server and
 * deliveries to sinks, connections that are kept alive included, get a third each of those that the process
 * does not need itself. The last third is for the connections that requests open to the node.
 *
 * @param registries the number of followed registries.
 * @param openFiles the number of descriptors that the process may have.
 * @returns the third.
 */
export function mostConnections(
  { signingThreads, registries }: { signingThreads: number; registries: number },
  openFiles: number,
): number {
  const own = OF_THE_PROCESS + signingThreads * OF_A_THREAD + registries * OF_A_REGISTRY;
  return Math.min(Math.max(Math.floor((openFiles - own) / 3), LEAST_CONNECTIONS), MOST_CONNECTIONS);
}

/** Connections reserved for requests that create no document, such as GET /health. */
const OF_OTHER_REQUESTS = 8;

/** The highest number of concurrent requests that create documents. */
export function creatingAtOnce(callers: number): number {
  return callers - OF_OTHER_REQUESTS;
}

/** The lowest common limit, for systems that do not report theirs. */
const USUAL_OPEN_FILES = 1_024;

/**
 * The number of descriptors that this process may have, as in `ulimit -n`. Node.js raises the soft limit to
 * the hard limit when it starts.
 */
function readOpenFilesLimit(): number {
  const limits = orUndefined(() => readFileSync('/proc/self/limits', 'utf8')) ?? '';
  const [, soft] = /^Max open files +(\S+)/m.exec(limits) ?? [];
  return soft === 'unlimited' ? Infinity : Number(soft ?? USUAL_OPEN_FILES);
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Describes the records to remove, and their retention. */
export interface RetentionOptions {
  /** Name of the records in the log, such as "issued documents". */
  what: string;
  /**
   * Removes records that ended before a time (epoch milliseconds) and resolves to their number. It may end
   * early when the signal aborts.
   */
  purge: (before: number, signal: AbortSignal) => Promise<number>;
  /** Days after which records are removed; undefined to keep them forever. */
  days: number | undefined;
  time: Time;
  logger: Logger;
}

/**
 * Removes old records now and every hour. A failed run is repeated an hour later.
 *
 * @returns `stop`, which resolves after a current run has ended.
 */
export function startRetention(options: RetentionOptions): { stop(): Promise<void> } {
  const { what, purge, days, time, logger } = options;
  return repeat(
    time,
    async (signal) => {
      try {
        // Nothing ended before 0. The purge removes the leftovers of a crash, with or without a retention.
        const removed = await purge(days === undefined ? 0 : time.now() - days * DAY_MS, signal);
        if (removed > 0) logger.info({ removed, days }, `${what} removed`);
      } catch (error) {
        logger.warn({ error }, `${what} could not be removed: ${messageOf(error)}`);
      }
    },
    HOUR_MS,
  );
}
