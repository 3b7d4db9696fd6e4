import type { Logger } from '../base/logger';
import type { NodeReport } from '../chain/node-states';
import type { HealthReport } from '../http/routes/published';
import type { IssuingReport } from './issuing-report';
import { progressOf, type FeedStatus, type FollowedFeed } from '../watcher/feed-status';
import type { SubscriptionsHealth } from '../subscriptions/subscription-health';
import { isAny, type Unfollowed } from './unfollowed';

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
  feeds: readonly FollowedFeed[],
  issuing: IssuingReport | undefined,
  now: number,
  unfollowed?: Unfollowed,
  subscriptions?: SubscriptionsHealth,
): HealthReport {
  return {
    isHealthy: feeds.every(({ status }) => isWell(status, now)),
    feeds: feeds.map(({ network, chainId, registry, status, nodes }) => ({
      network,
      chainId,
      registry,
      ...status,
      since: timeOf(status.since),
      catchUp: progressOf(status, now),
      ...shownNodes(nodes?.()),
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

/**
 * The states of several nodes. `confirmedBy`: how many nodes must give an answer before it counts. With 1,
 * one node is left, and is asked for logs twice.
 */
function shownNodes(nodes: readonly NodeReport[] | undefined): object {
  if (nodes === undefined) return {};
  const up = nodes.filter(({ state }) => state === 'up').length;
  return {
    confirmedBy: Math.min(up, 2),
    nodes: nodes.map(({ since, lastDifference, ...node }) => ({
      ...node,
      since: timeOf(since),
      lastDifference: lastDifference && { ...lastDifference, at: timeOf(lastDifference.at) },
    })),
  };
}

/** The report as JSON: amounts of wei become strings, which exceed JSON numbers, and times become text. */
function shownIssuing({ mints, signing, nodes, signers, wallet }: IssuingReport): object {
  const failure = mints?.lastFailure;
  return {
    mints: mints && { ...mints, lastFailure: failure && { ...failure, at: timeOf(failure.at) } },
    signing,
    ...shownNodes(nodes),
    signers: signers.map((signer) => ({ ...signer, since: timeOf(signer.since) })),
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

/**
 * Returns a function that writes a log line when a subscription begins to fail, and one when it recovers.
 * Call it with each reading of their states.
 */
export function failureLog(logger: Logger): (health: SubscriptionsHealth) => void {
  const failing = new Set<string>();
  return ({ troubled }) => {
    const now = new Map(troubled.map(({ id, failingSince }) => [id, failingSince]));
    for (const [subscription, since] of now)
      if (since !== undefined && !failing.has(subscription)) {
        failing.add(subscription);
        logger.warn(
          { subscription, failingSince: timeOf(since) },
          'a subscription is failing: no delivery succeeds',
        );
      }
    for (const subscription of failing)
      if (now.get(subscription) === undefined) {
        failing.delete(subscription);
        logger.info({ subscription }, 'a subscription is not failing any more');
      }
  };
}
