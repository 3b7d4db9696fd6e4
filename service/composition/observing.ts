import { systemClock } from '../base/clock';
import type { Logger } from '../base/logger';
import { registryName } from '../base/registry-name';
import { repeat } from '../base/waiting';
import { shared } from '../base/shared-answers';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import { type CheckTiming, startContradictionCheck } from '../observability/contradictions';
import { failureLog, healthOf } from '../observability/health';
import type { MintOutcomes } from '../observability/issuing-report';
import type { Metrics } from '../observability/metrics';
import { logUnfollowed, type Unfollowed, unfollowedOf } from '../observability/unfollowed';
import type { EventDelivery } from './event-delivery';
import { type Issuing, ownRegistryOf } from './issuing';
import type { Subscribing } from './subscribing';

/** The observation of issuing and event delivery. */
export type Observing = ReturnType<typeof startObserving>;

/** Health probes give up after a second, so GET /health does not wait longer for the database. */
const HEALTH_WITHIN_MS = 500;
/** Prometheus gives up after ten seconds by default. */
const METRICS_WITHIN_MS = 5_000;
/** The log shows failing subscriptions even if nobody asks for health or metrics. */
const FAILURES_EVERY_MS = 60_000;
/**
 * Observes issuing and event delivery: it answers GET /health and GET /metrics, and compares the results of
 * both. It changes neither.
 */
export function startObserving(
  config: Config,
  parts: {
    database: Database;
    /** Created before issuing and event delivery, which report to it. */
    metrics: Metrics;
    outcomes: Pick<MintOutcomes, 'recent'>;
    issuing: Pick<Issuing, 'scope' | 'report'>;
    eventDelivery: Pick<EventDelivery, 'feeds' | 'feedOf' | 'figures'>;
    subscribing: Pick<Subscribing, 'health'>;
    logger: Logger;
    /** Times that tests shorten. */
    timing: Partial<CheckTiming>;
  },
) {
  const { database, metrics, outcomes, issuing, eventDelivery, subscribing, logger, timing } = parts;
  const { scope } = issuing;
  const registry = ownRegistryOf(config);
  const clock = systemClock;
  const findUnfollowed = (): Promise<Unfollowed> =>
    unfollowedOf(database, {
      chainId: config.network.chainId,
      registries: eventDelivery.feeds.map(({ chainId, registry }) => registryName(chainId, registry)),
      scope,
    });
  const logFailures = failureLog(logger);
  const readOutboxes = shared(eventDelivery.figures, { clock });
  const readUnfollowed = shared(findUnfollowed, { clock });
  const readSubscriptions = shared(
    async () => {
      try {
        const health = await subscribing.health();
        logFailures(health);
        return health;
      } catch (error) {
        logger.warn({ error }, 'the states of subscriptions cannot be read');
        throw error;
      }
    },
    { clock },
  );
  const told = findUnfollowed().then(
    (unfollowed) => logUnfollowed(unfollowed, logger),
    (error: unknown) => logger.warn({ error }, 'the work that no setting follows cannot be counted'),
  );
  const check =
    scope &&
    registry &&
    startContradictionCheck({
      db: database.db,
      scope,
      // The time until the chain calls a block final is not known before.
      confirmations:
        typeof registry.confirmations === 'number' ? registry.confirmations : registry.network.confirmations,
      startBlock: registry.startBlock,
      blockTimeMs: registry.network.blockTimeMs,
      clock,
      logger,
      contradicted: metrics.contradicted,
      recentMints: outcomes.recent,
      readAgain: (block) =>
        eventDelivery.feedOf(registryName(registry.network.chainId, registry.address))?.readAgain(block),
      timing,
    });
  const failures = repeat(async () => void (await readSubscriptions(METRICS_WITHIN_MS)), FAILURES_EVERY_MS);
  return {
    async health(this: void) {
      const [report, unfollowed, subscriptions] = await Promise.all([
        issuing.report(HEALTH_WITHIN_MS),
        readUnfollowed(HEALTH_WITHIN_MS),
        readSubscriptions(HEALTH_WITHIN_MS),
      ]);
      const health = healthOf(eventDelivery.feeds, report, clock.now(), unfollowed, subscriptions);
      return { ...health, isDatabaseRemoved: database.isRemoved() };
    },
    metrics: {
      contentType: metrics.contentType,
      async text() {
        const [report, outboxes, unfollowed, subscriptions] = await Promise.all([
          issuing.report(METRICS_WITHIN_MS),
          readOutboxes(METRICS_WITHIN_MS),
          readUnfollowed(METRICS_WITHIN_MS),
          readSubscriptions(METRICS_WITHIN_MS),
        ]);
        const { feeds } = eventDelivery;
        return metrics.text({ feeds, outboxes, issuing: report, unfollowed, subscriptions });
      },
    },
    unfollowed: findUnfollowed,
    stop: async () => void (await Promise.all([told, check?.stop(), failures.stop()])),
  };
}
