import { timeAt } from '../base/time';
import type { NodeReport } from '../chain/node-states';
import type { HealthReport } from '../http/routes/published';
import { progressOf } from '../watcher/feed-status';
import { isWell } from './observed-conditions';
import { shownConditions } from './problems';
import type { Snapshot } from './snapshot';

/** Conditions that are reported: a probe reads the whole report. */
const MOST_CONDITIONS = 100;

/**
 * Healthy while every feed is read, by this process or another: this needs no database. Issuing and
 * conditions are reported but do not decide: a 503 leads to a restart, which would not fund a wallet.
 */
export function healthOf(
  { now, feeds, issuing, conditions }: Snapshot,
  database?: HealthReport['database'],
): HealthReport {
  return {
    status: database === undefined && feeds.every((feed) => isWell(feed, now)) ? 'ok' : 'failing',
    database,
    feeds: feeds.map(({ network, chainId, registry, status, nodes }) => {
      const catchUp = progressOf(status, now);
      return inJson({ network, chainId, registry, ...status, catchUp, ...withAgreement(nodes?.()) });
    }),
    issuing: issuing && inJson({ ...issuing, ...withAgreement(issuing.nodes) }),
    conditions:
      conditions &&
      shownConditions(conditions, now)
        .slice(0, MOST_CONDITIONS)
        .map((condition) => inJson({ ...condition, href: undefined })),
  };
}

/**
 * The states of several nodes. `confirmedBy`: how many nodes must give an answer before it counts. With 1,
 * one node is left, and is asked for logs twice.
 */
function withAgreement(nodes: readonly NodeReport[] | undefined): object {
  if (nodes === undefined) return {};
  const up = nodes.filter(({ state }) => state === 'up').length;
  return { confirmedBy: Math.min(up, 2), nodes };
}

/** The members of reports that are times, in epoch milliseconds. */
const TIMES = ['at', 'since', 'readAt'];

/** A report as JSON: times become text, and so do amounts of wei, which exceed JSON numbers. */
function inJson(report: object): object {
  const text = JSON.stringify(report, (name, value: unknown) => {
    if (typeof value === 'bigint') return value.toString();
    return typeof value === 'number' && TIMES.includes(name) ? timeAt(value) : value;
  });
  return JSON.parse(text) as object;
}
