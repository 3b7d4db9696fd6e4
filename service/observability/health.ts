import type { HealthReport } from '../http/routes/health';
import type { IssuingReport } from './issuing-report';
import { progressOf } from '../watcher/catch-up';
import type { FeedStatus } from '../watcher/feed-status';
import { isAny, type Unfollowed } from './unfollowed';

/** A registry's feed, for health and metrics. */
export interface ReportedFeed {
  network: string;
  chainId: number;
  /** Address in lower case. */
  registry: string;
  status: Readonly<FeedStatus>;
}

/** A feed that was not read for longer is no longer healthy: nodes are restarted, but not for a minute. */
const UNHEALTHY_AFTER_MS = 60_000;

/**
 * Healthy while every feed is read, by whichever process. Issuing, and what no setting follows, are told and
 * do not decide: a 503 leads to a restart, which fills no wallet.
 *
 * @param issuing undefined when settings are missing.
 */
export function healthOf(
  feeds: readonly ReportedFeed[],
  issuing: IssuingReport | undefined,
  now: number,
  unfollowed?: Unfollowed,
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
  };
}

/** As JSON has it: amounts of wei are more than its numbers hold, and times are text. */
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

function isWell({ state, since }: FeedStatus, now: number): boolean {
  if (state === 'following' || state === 'standby') return true;
  return state !== 'stopped' && now - since < UNHEALTHY_AFTER_MS;
}
