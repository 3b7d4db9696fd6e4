import { systemClock } from '../base/clock';
import type { Logger } from '../base/logger';
import { registryName, type RegistryName } from '../base/registry-name';
import { answerInTime } from '../base/shared-answers';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import type { DeliveredFeed } from './feed-set';
import type { HttpAppOptions } from '../http/app';
import { mintFiguresOf } from '../journal/read-issuances';
import { type CheckTiming, startContradictionCheck } from '../observability/contradictions';
import { startFailingCheck } from '../observability/failing-subscriptions';
import { healthOf } from '../observability/health';
import { createIssuingReport, type IssuingReport } from '../observability/issuing-report';
import type { Metrics } from '../observability/metrics';
import type { MintOutcomes } from '../observability/mint-outcomes';
import { type Followed, logUnfollowed, type Unfollowed, unfollowedOf } from '../observability/unfollowed';
import { createWalletReading } from '../observability/wallet-reading';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { EventDelivery } from './event-delivery';
import { type Issuing, ownRegistryOf } from './issuing';
import type { Subscribing } from './subscribing';

/**
 * Observes issuing and event delivery: it answers GET /health and GET /metrics, and compares the results of
 * both.
 */
export interface Observing extends Pick<HttpAppOptions, 'health' | 'metrics'> {
  /** Reports that the console shows too. Undefined: it is not known in time. */
  readonly reports: {
    issuing(this: void): Promise<IssuingReport | undefined>;
    outboxes(this: void): Promise<({ registry: RegistryName } & OutboxFigures)[] | undefined>;
    unfollowed(this: void): Promise<Unfollowed | undefined>;
  };
  stop(): Promise<void>;
}

/** The observed parts and their counters. */
export interface ObservingParts {
  database: Database;
  /** Created before issuing and event delivery, which report to it. */
  metrics: Metrics;
  outcomes: MintOutcomes;
  issuing: Issuing;
  eventDelivery: EventDelivery;
  subscribing: Pick<Subscribing, 'health'>;
  logger: Logger;
  /** Times that tests shorten. */
  timing: Partial<CheckTiming>;
}

/** Health probes give up after a second, so GET /health does not wait longer for the database. */
const HEALTH_WITHIN_MS = 500;
/** Prometheus gives up after ten seconds by default. */
const METRICS_WITHIN_MS = 5_000;
/** The console does not wait: it shows the last answer until this one arrives. */
const CONSOLE_WITHIN_MS = 60_000;
/** Milliseconds for which a balance is kept. */
const KEEP_BALANCE_MS = 60_000;
const KEEP_LOCAL_BALANCE_MS = 10_000;

/** Starts observing issuing and event delivery. It changes neither. */
export function startObserving(config: Config, parts: ObservingParts): Observing {
  const { database, metrics, eventDelivery, logger } = parts;
  const reportIssuing = issuingReportOf(config, parts);
  const askForOutboxes = answerInTime(() => eventDelivery.figures());
  const findUnfollowed = (): Promise<Unfollowed> => unfollowedOf(database, followedBy(config, parts));
  const askForUnfollowed = answerInTime(findUnfollowed);
  const told = findUnfollowed().then(
    (unfollowed) => logUnfollowed(unfollowed, logger),
    (error: unknown) => logger.warn({ error }, 'the work that no setting follows cannot be counted'),
  );
  const check = startCheck(config, parts);
  const askForSubscriptions = answerInTime(parts.subscribing.health);
  const failing = startFailingCheck(parts.subscribing.health, logger);
  return {
    async health() {
      const [issuing, unfollowed, subscriptions] = await Promise.all([
        reportIssuing(HEALTH_WITHIN_MS),
        askForUnfollowed(HEALTH_WITHIN_MS),
        askForSubscriptions(HEALTH_WITHIN_MS),
      ]);
      const report = healthOf(eventDelivery.feeds, issuing, systemClock.now(), unfollowed, subscriptions);
      return { ...report, isDatabaseRemoved: database.isRemoved() };
    },
    metrics: {
      contentType: metrics.contentType,
      async text() {
        const [issuing, outboxes = [], unfollowed, subscriptions] = await Promise.all([
          reportIssuing(METRICS_WITHIN_MS),
          askForOutboxes(METRICS_WITHIN_MS),
          askForUnfollowed(METRICS_WITHIN_MS),
          askForSubscriptions(METRICS_WITHIN_MS),
        ]);
        return metrics.text({ feeds: eventDelivery.feeds, outboxes, issuing, unfollowed, subscriptions });
      },
    },
    reports: {
      issuing: () => reportIssuing(CONSOLE_WITHIN_MS),
      outboxes: () => askForOutboxes(CONSOLE_WITHIN_MS),
      unfollowed: () => askForUnfollowed(CONSOLE_WITHIN_MS),
    },
    stop: async () => void (await Promise.all([told, check?.stop(), failing.stop()])),
  };
}

function followedBy({ network }: Config, { issuing, eventDelivery }: ObservingParts): Followed {
  const registries = eventDelivery.feeds.map(({ chainId, registry }) => registryName(chainId, registry));
  return { chainId: network.chainId, registries, scope: issuing.watched?.scope };
}

/** Undefined unless the registry of issuing is also followed. */
function startCheck(
  config: Config,
  { database, metrics, outcomes, issuing, eventDelivery, logger, timing }: ObservingParts,
): { stop(): Promise<unknown> } | undefined {
  const registry = ownRegistryOf(config);
  if (issuing.watched === undefined || registry === undefined) return undefined;
  return startContradictionCheck({
    db: database.db,
    scope: issuing.watched.scope,
    confirmations: registry.confirmations,
    startBlock: registry.startBlock,
    blockTimeMs: registry.network.blockTimeMs,
    clock: systemClock,
    logger,
    contradicted: () => metrics.contradicted(),
    recentMints: outcomes.recent,
    readAgain(block) {
      const address = registry.address.toLowerCase();
      const isOwn = (feed: DeliveredFeed): boolean =>
        feed.chainId === registry.network.chainId && feed.registry === address;
      eventDelivery.feeds.find(isOwn)?.readAgain(block);
    },
    timing,
  });
}

/** The report is undefined when documents cannot be issued because settings are missing. */
function issuingReportOf(
  { network }: Config,
  { database, outcomes, issuing, logger }: ObservingParts,
): (withinMs: number) => Promise<IssuingReport | undefined> {
  if (issuing.watched === undefined) return async () => undefined;
  const { scope, signing, walletAddress: address, readBalance, readFees } = issuing.watched;
  const keepMs = network.local ? KEEP_LOCAL_BALANCE_MS : KEEP_BALANCE_MS;
  const clock = systemClock;
  return createIssuingReport({
    mints: () => mintFiguresOf(database.db, scope),
    lastFailure: () => outcomes.lastFailure(),
    signing,
    wallet: createWalletReading({ address, readBalance, readFees, keepMs, clock, logger }),
    clock,
  });
}
