import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import type { Logger } from '../base/logger';
import { registryName } from '../base/registry-name';
import { shared } from '../base/shared-answers';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import { startContradictionCheck } from '../observability/contradictions';
import { healthOf } from '../observability/health';
import type { MintOutcomes } from '../observability/issuing-report';
import type { Metrics } from '../observability/metrics';
import { unfollowedOf } from '../observability/unfollowed';
import { distinctConditions, readConditions } from '../outbox/conditions';
import { countSubscriptions } from '../subscriptions/stored-subscriptions';
import type { EventDelivery } from './event-delivery';
import { type Issuing, ownRegistryOf } from './issuing';
import { watchConditions } from './watch-conditions';

/** The observation of issuing and event delivery. */
export type Observing = ReturnType<typeof startObserving>;

/** Health probes give up after a second, so GET /health does not wait longer for the database. */
const HEALTH_WITHIN_MS = 500;
/** Prometheus gives up after ten seconds by default. */
const METRICS_WITHIN_MS = 5_000;

/**
 * Observes issuing and event delivery: it answers GET /health and GET /metrics, tells the operator of
 * conditions, and compares the results of both. It changes neither.
 */
export function startObserving(
  config: Config,
  parts: {
    database: Database;
    /** Created before issuing and event delivery, which report to it. */
    metrics: Metrics;
    outcomes: Pick<MintOutcomes, 'recent'>;
    lifecycle: Lifecycle;
    issuing: Pick<Issuing, 'scope' | 'report' | 'isMinting'>;
    eventDelivery: Pick<EventDelivery, 'feeds' | 'feedOf' | 'figures'>;
    time: Time;
    logger: Logger;
  },
) {
  const { database, metrics, outcomes, lifecycle, issuing, eventDelivery, time, logger } = parts;
  const { db } = database;
  const { scope } = issuing;
  const registry = ownRegistryOf(config);
  const names = () => eventDelivery.feeds.map(({ chainId, registry }) => registryName(chainId, registry));
  const findUnfollowed = () =>
    unfollowedOf(database, { chainId: config.network.chainId, registries: names(), scope });
  const readOutboxes = shared(eventDelivery.figures, { time });
  const conditions = async () => distinctConditions([...watching.unstored(), ...(await readConditions(db))]);
  const sharedConditions = shared(
    () =>
      conditions().catch((error: unknown) => {
        logger.warn({ error }, 'the conditions cannot be read');
        throw error;
      }),
    { time },
  );
  const readSubscriptions = shared(async () => countSubscriptions(config, db, await conditions()), { time });
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
      time,
      logger,
      contradicted: () => lifecycle.emit('contradicted'),
      recentMints: outcomes.recent,
      readAgain: (block) =>
        eventDelivery.feedOf(registryName(registry.network.chainId, registry.address))?.readAgain(block),
    });
  const watching = watchConditions(config, {
    database,
    eventDelivery,
    issuing,
    findUnfollowed,
    time,
    logger,
  });
  return {
    async health(this: void) {
      const [report, seen] = await Promise.all([
        issuing.report(HEALTH_WITHIN_MS),
        sharedConditions(HEALTH_WITHIN_MS),
      ]);
      const health = healthOf(eventDelivery.feeds, report, time.now(), seen);
      const unwritable = watching.unstored().length > 0 ? ('unwritable' as const) : undefined;
      return { ...health, database: database.isRemoved() ? ('removed' as const) : unwritable };
    },
    metrics: {
      contentType: metrics.contentType,
      async text() {
        const [report, outboxes, seen, subscriptions] = await Promise.all([
          issuing.report(METRICS_WITHIN_MS),
          readOutboxes(METRICS_WITHIN_MS),
          sharedConditions(METRICS_WITHIN_MS),
          readSubscriptions(METRICS_WITHIN_MS),
        ]);
        const { feeds } = eventDelivery;
        const now = time.now();
        return metrics.text({ feeds, outboxes, issuing: report, conditions: seen, subscriptions, now });
      },
    },
    conditions,
    stop: async () => void (await Promise.all([check?.stop(), watching.stop()])),
  };
}
