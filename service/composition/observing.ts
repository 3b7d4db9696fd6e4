import { registryName } from '../base/registry-name';
import type { PublishedParts } from '../http/routes/published';
import { startContradictionCheck } from '../observability/contradictions';
import { healthOf } from '../observability/health';
import type { Metrics } from '../observability/metrics';
import { createSnapshots, type SnapshotSources } from '../observability/snapshot';
import { distinctConditions, readConditions } from '../outbox/conditions';
import { countSubscriptions } from '../subscriptions/stored-subscriptions';
import type { Core } from './core';
import { type Lines, StorageTrial, watchConditions } from './watch-conditions';

/** The observation of issuing and event delivery. */
export interface Observing extends Pick<PublishedParts, 'health' | 'metrics'> {
  /** The sources of snapshots. */
  readonly sources: SnapshotSources;
  stop(): Promise<void>;
}

/** Health probes give up after a second, so GET /health does not wait longer for the database. */
const HEALTH_WITHIN_MS = 500;
/** Prometheus gives up after ten seconds by default. */
const METRICS_WITHIN_MS = 5_000;

/**
 * Observes issuing and event delivery: it answers GET /health and GET /metrics, tells the operator of
 * conditions, and compares the results of both. It changes neither.
 *
 * @param metrics created before issuing and event delivery, which they count.
 */
export function startObserving(core: Core, metrics: Metrics, { issuing, eventDelivery }: Lines): Observing {
  const { config, database, time, logger } = core;
  const { db } = database;
  const storage = new StorageTrial(core);
  const conditions = async () =>
    distinctConditions([...(storage.unwritable ? [storage.unwritable] : []), ...(await readConditions(db))]);
  const sources: SnapshotSources = {
    feeds: eventDelivery.feeds,
    issuing,
    conditions,
    outboxes: eventDelivery.figures,
    subscriptions: async () => countSubscriptions(config, db, await conditions()),
  };
  const logged = () =>
    conditions().catch((error: unknown) => {
      logger.warn({ error }, 'the conditions cannot be read');
      throw error;
    });
  const takeSnapshot = createSnapshots({ ...sources, conditions: logged }, { time });
  const watching = watchConditions(core, { issuing, eventDelivery }, takeSnapshot, storage);
  const registry = config.ownRegistry;
  const check =
    issuing &&
    registry &&
    startContradictionCheck({
      ...core,
      scope: issuing.scope,
      registry,
      readAgain: (block) =>
        eventDelivery
          .feedOf(registryName(registry.network.chainId, registry.address))
          ?.running?.follower.readAgain(block),
    });
  return {
    sources,
    async health() {
      const snapshot = await takeSnapshot(HEALTH_WITHIN_MS, ['conditions']);
      return healthOf(snapshot, database.isRemoved() ? 'removed' : storage.unwritable && 'unwritable');
    },
    metrics: async () => metrics(await takeSnapshot(METRICS_WITHIN_MS)),
    stop: async () => void (await Promise.all([check?.stop(), watching.stop()])),
  };
}
