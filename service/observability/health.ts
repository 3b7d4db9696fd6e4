import { timeAt } from '../base/time';
import type { NodeReport } from '../chain/node-states';
import type { HealthReport } from '../http/routes/published';
import type { SeenCondition } from '../outbox/conditions';
import { progressOf, type FollowedFeed } from '../watcher/feed-status';
import type { IssuingReport } from './issuing-report';
import { isWell } from './observed-conditions';
import { shownConditions } from './problems';

/** Conditions that are reported: a probe reads the whole report. */
const MOST_CONDITIONS = 100;

/**
 * Healthy while every feed is read, by this process or another: this needs no database. Issuing and
 * conditions are reported but do not decide: a 503 leads to a restart, which would not fund a wallet.
 *
 * @param issuing undefined if settings are missing.
 * @param conditions undefined while the database cannot be asked.
 */
export function healthOf(
  feeds: readonly FollowedFeed[],
  issuing: IssuingReport | undefined,
  now: number,
  conditions?: readonly SeenCondition[],
): HealthReport {
  return {
    isHealthy: feeds.every((feed) => isWell(feed, now)),
    feeds: feeds.map(({ network, chainId, registry, status, nodes }) => ({
      network,
      chainId,
      registry,
      ...status,
      since: timeAt(status.since),
      catchUp: progressOf(status, now),
      ...shownNodes(nodes?.()),
    })),
    issuing: issuing && shownIssuing(issuing),
    conditions:
      conditions &&
      shownConditions(conditions, now)
        .slice(0, MOST_CONDITIONS)
        .map(({ what, subject, since, detail, severity, message, remedy }) => {
          return { what, subject, since: timeAt(since), detail, severity, message, remedy };
        }),
  };
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
      since: timeAt(since),
      lastDifference: lastDifference && { ...lastDifference, at: timeAt(lastDifference.at) },
    })),
  };
}

/** The report as JSON: amounts of wei become strings, which exceed JSON numbers, and times become text. */
function shownIssuing({ mints, signing, nodes, signers, wallet }: IssuingReport): object {
  const failure = mints?.lastFailure;
  return {
    mints: mints && { ...mints, lastFailure: failure && { ...failure, at: timeAt(failure.at) } },
    signing,
    ...shownNodes(nodes),
    signers: signers.map((signer) => ({ ...signer, since: timeAt(signer.since) })),
    wallet: wallet && {
      address: wallet.address,
      balanceWei: wallet.balanceWei.toString(),
      mintsAffordable: wallet.mintsAffordable,
      gasOfMint: Number(wallet.gasOfMint),
      isGasEstimated: wallet.isGasEstimated,
      readAt: timeAt(wallet.readAt),
    },
  };
}
