import { lookup as lookUpName } from 'node:dns';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { v7 as uuidV7 } from 'uuid';
import { createLifecycle, type Lifecycle } from '../base/lifecycle';
import { systemTime, type Time, repeat, toldIfSlow } from '../base/time';
import { ChainError, messageOf, orUndefined } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl, secretMasker } from '../base/mask-secrets';
import { connectNodes, type ConnectedNodes } from '../chain/connect-nodes';
import { createFinalBlockReading } from '../chain/finality';
import { type Config, missingForIssuing } from '../config/config';
import { openIssuingWarning, otherFormsOf } from '../config/warnings';
import { openDatabase } from '../database/open-database';
import { createDeliverySlots } from '../delivery/delivery-slots';
import { readRegistries } from '../followed-registries/stored-registries';
import { createHttpApp } from '../http/app';
import { listen } from '../http/server';
import { openTunnel, type TunnelOptions } from '../http/tunnel';
import { createIssuing } from '../issuance/issue-document';
import { readCursorKey } from '../outbox/stream-cursor';
import { createMetrics } from '../observability/metrics';
import type { Core } from './core';
import { startEventDelivery, type EventDelivery } from './event-delivery';
import { startIssuing } from './issuing';
import { startKeyedApi } from './keyed-api';
import { startObserving } from './observing';

/** Parts that tests replace. `lookup` finds the addresses of sinks, `load` the tunnel's library. */
export interface ReplacedParts {
  time?: Time;
  lifecycle?: Lifecycle;
  lookup?: LookupFunction;
  load?: TunnelOptions['load'];
}

/** The running service. */
export interface App {
  url: string;
  /** Finishes requests and deliveries in flight and closes everything. */
  stop(): Promise<void>;
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
  { time = systemTime, lifecycle = createLifecycle(), lookup = lookUpName, load }: ReplacedParts = {},
): Promise<App> {
  /** The parts that have started, in the order of their starts. */
  const started: { stop(): unknown }[] = [];
  const stop = async (): Promise<void> => {
    for (const part of started.splice(0).reverse()) await part.stop();
  };
  const add = <Part extends { stop(): unknown }>(part: Part): Part => {
    started.push(part);
    return part;
  };
  const inTime = <T>(what: string, start: Promise<T>): Promise<T> =>
    toldIfSlow(time, start, () => logger.warn(`still starting: waiting for ${what}`));
  try {
    const nodes = connectNodes(config.rpcUrls, config.network, time, 'single', logger);
    add({ stop: () => nodes.client.close() });
    const ofNode = `the node at ${config.rpcUrls.map(printableUrl).join(', ')} to report its chain id`;
    await inTime(ofNode, expectNode(config, nodes, logger));
    const database = await inTime('the database', openDatabase(time, config, logger));
    add({ stop: () => database.close() });
    const core: Core = { config, database, time, lifecycle, logger, lookup };
    const metrics = createMetrics(lifecycle);
    const issuing = await inTime('the threads that sign', startIssuing(core, nodes));
    if (issuing) add(issuing);
    const registries = config.registries.length + (await readRegistries(database.db)).length;
    const connections = mostConnections({ ...config, registries }, readOpenFilesLimit());
    const slots = createDeliverySlots({ most: connections, time, logger });
    const eventDelivery = add(await startEventDelivery(core, slots));
    if (issuing) add(startRetention(core, 'issued documents', issuing.journal, config.documentRetentionDays));
    add(startRetention(core, 'old events', eventDelivery, config.eventRetentionDays));
    const lines = { issuing, eventDelivery };
    const observing = add(startObserving(core, metrics, lines));
    const pageKey = await readCursorKey(database.db);
    const keyedApi = add(startKeyedApi(core, lines, observing.sources, nodes.client, pageKey));
    const missing = missingForIssuing(config);
    if (missing.length > 0) {
      const problem = `documents cannot be issued: ${missing.join(', ')} not configured.`;
      logger.warn({ missing }, `${problem}${otherFormsOf(missing)}`);
    }
    const app = createHttpApp({
      ...config,
      ...keyedApi,
      issuing: createIssuing(issuing?.issuer ?? { missing }, uuidV7),
      logger,
      mask: secretMasker(config.secrets),
      pageKey,
      health: observing.health,
      metrics: observing.metrics,
      issuedDocuments: issuing?.journal,
      time,
      lifecycle,
      isDatabaseRemoved: () => database.isRemoved(),
      ...requestsAtOnce(connections),
      bodyLimits: { large: { permits: config.largeBodiesAtOnce } },
    });
    const handle = app.callback();
    const server = await listen(
      (request, response) => void handle(request, response),
      config.host,
      config.port,
      { time, connections: { most: connections, logger } },
    );
    const warning = issuing && openIssuingWarning(config, server.url);
    if (warning) logger[warning.level](warning.message);
    const { domain, tunnelAuthtoken: authtoken } = config;
    const tunnel =
      authtoken === undefined
        ? undefined
        : openTunnel({ localUrl: server.url, domain, authtoken, time, logger, load });
    return {
      url: server.url,
      async stop() {
        // Requests through the tunnel are answered before it closes. Deliveries stop at the same time.
        const closed = server.close().finally(() => tunnel?.close());
        await Promise.all([closed, eventDelivery.stop(), keyedApi.stop()]);
        await stop();
      },
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

/** Warns of a node that cannot be asked now. @throws ConfigurationError */
async function expectNode(
  config: Config,
  { client, checkChain }: ConnectedNodes,
  logger: Logger,
): Promise<void> {
  try {
    await checkChain();
    await createFinalBlockReading(client, config.network, config.mintConfirmations)(0);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    logger.warn({ error }, error.message);
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

/** Connections reserved for requests that do not wait, such as GET /health. */
const OF_OTHER_REQUESTS = 8;

/** The highest numbers of concurrent requests that create documents, and that wait for events. */
export function requestsAtOnce(callers: number): { callersAtOnce: number; waitsAtOnce: number } {
  const most = callers - OF_OTHER_REQUESTS;
  const waitsAtOnce = Math.floor(most / 3);
  return { callersAtOnce: most - waitsAtOnce, waitsAtOnce };
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

/**
 * Removes old records now and every hour. A failed run is repeated an hour later.
 *
 * @param what names the records in the log, such as "issued documents".
 * @param days after which records are removed; undefined to keep them forever.
 * @returns `stop`, which resolves after a current run has ended.
 */
export function startRetention(
  { time, logger }: Pick<Core, 'time' | 'logger'>,
  what: string,
  records: Pick<EventDelivery, 'purge'>,
  days: number | undefined,
): { stop(): Promise<void> } {
  return repeat(
    time,
    async (signal) => {
      try {
        // Nothing ended before 0. The purge removes the leftovers of a crash, with or without a retention.
        const removed = await records.purge(days === undefined ? 0 : time.now() - days * DAY_MS, signal);
        if (removed > 0) logger.info({ removed, days }, `${what} removed`);
      } catch (error) {
        logger.warn({ error }, `${what} could not be removed: ${messageOf(error)}`);
      }
    },
    HOUR_MS,
  );
}
