import type { HealthReport } from '../http/routes/health';
import type { FeedStatus } from '../watcher/feed-status';

/** A registry's feed, for health and metrics. */
export interface ReportedFeed {
  network: string;
  chainId: number;
  /** Address in lower case. */
  registry: string;
  status: Readonly<FeedStatus>;
}

/** A feed that has not been read for longer is no longer healthy: nodes are restarted, but not for a minute. */
const UNHEALTHY_AFTER_MS = 60_000;

/** Healthy while every feed is read, by whichever process. */
export function healthOf(feeds: readonly ReportedFeed[], now: number): HealthReport {
  return {
    isHealthy: feeds.every(({ status }) => isWell(status, now)),
    feeds: feeds.map(({ network, chainId, registry, status: { since, ...status } }) => ({
      network,
      chainId,
      registry,
      ...status,
      since: new Date(since).toISOString(),
    })),
  };
}

function isWell({ state, since }: FeedStatus, now: number): boolean {
  if (state === 'following' || state === 'standby') return true;
  return state !== 'stopped' && now - since < UNHEALTHY_AFTER_MS;
}
