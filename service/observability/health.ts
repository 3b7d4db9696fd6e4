import type { HealthReport } from '../http/routes/health';
import type { IssuingReport } from './issuing-report';
import { progressOf, type FeedStatus } from '../watcher/feed-status';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';
import { isAny, type Unfollowed } from './unfollowed';

/** A registry's feed, for health and metrics. */
export interface ReportedFeed {
  network: string;
  chainId: number;
  /** Lower-case address. */
  registry: string;
  status: Readonly<FeedStatus>;
}

/** Time without reading after which a feed is unhealthy. It covers the restart of a node. */
const UNHEALTHY_AFTER_MS = 60_000;
/** Subscriptions that are reported: a probe reads the whole report. */
const MOST_SUBSCRIPTIONS = 100;

/**
 * Healthy while every feed is read, by this process or another. Issuing, unfollowed registries and
 * subscriptions are reported but do not decide: a 503 leads to a restart, which would not fund a wallet.
 *
 * @param issuing undefined if settings are missing.
 */
export function healthOf(
  feeds: readonly ReportedFeed[],
  issuing: IssuingReport | undefined,
  now: number,
  unfollowed?: Unfollowed,
  subscriptions?: SubscriptionsHealth,
): HealthReport {
  return {
    isHealthy: feeds.every(({ status }) => isWell(status, now)),
    feeds: feeds.map(({ network, chainId, registry, status }) => ({
      network,
      chainId,
      registry,
      ...status,
      since: timeOf(status.since),
      catchUp: progressOf(status, now),
    })),
    issuing: issuing && shownIssuing(issuing),
    unfollowed: unfollowed && isAny(unfollowed) ? unfollowed : undefined,
    subscriptions: subscriptions && shownSubscriptions(subscriptions),
  };
}

function shownSubscriptions({ troubled }: SubscriptionsHealth): object[] | undefined {
  if (troubled.length === 0) return undefined;
  return troubled.slice(0, MOST_SUBSCRIPTIONS).map(({ id, state, failingSince }) => ({
    id,
    state,
    failingSince: failingSince === undefined ? undefined : timeOf(failingSince),
  }));
}

/** The report as JSON: amounts of wei become strings, which exceed JSON numbers, and times become text. */
function shownIssuing({ mints, signing, wallet }: IssuingReport): object {
  const failure = mints?.lastFailure;
  return {
    mints: mints && { ...mints, lastFailure: failure && { ...failure, at: timeOf(failure.at) } },
    signing,
    wallet: wallet && {
      address: wallet.address,
      balanceWei: wallet.balanceWei.toString(),
      mintsAffordable: wallet.mintsAffordable,
      readAt: timeOf(wallet.readAt),
    },
  };
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function isWell({ state, code, since }: FeedStatus, now: number): boolean {
  // A restart would not bring the chain to the block at which the feed begins.
  if (state === 'following' || state === 'standby' || code === 'START_BLOCK_AHEAD') return true;
  return state !== 'stopped' && now - since < UNHEALTHY_AFTER_MS;
}
