import { shared, type Sharing } from '../base/shared-answers';
import type { OutboxFigures } from '../outbox/outbox-figures';
import type { SeenCondition } from '../outbox/conditions';
import type { SubscriptionState } from '../subscriptions/subscription';
import type { FollowedFeed } from '../watcher/feed-status';
import type { IssuingReport, MintReport } from './issuing-report';

/** The figures of the service at one moment. Health, metrics, conditions and the console show them. */
export interface Snapshot {
  /** Epoch milliseconds. */
  now: number;
  feeds: readonly FollowedFeed[];
  /** Undefined if documents cannot be issued because settings are missing. */
  issuing: IssuingReport | undefined;
  /** Those that hold. Undefined if the database cannot be asked or was not, as the members below. */
  conditions: readonly SeenCondition[] | undefined;
  outboxes: readonly OutboxFigures[] | undefined;
  /** The number of subscriptions by state. */
  subscriptions: Readonly<Record<SubscriptionState, number>> | undefined;
}

/** The figures of issuing, for a snapshot. */
export interface IssuingFigures {
  countMints(this: void): Promise<MintReport>;
  /** Those of this process, at once. */
  ownFigures(this: void): Promise<Omit<IssuingReport, 'mints'>>;
}

/** The parts of the service that snapshots are taken of. */
export interface SnapshotSources {
  feeds(this: void): readonly FollowedFeed[];
  issuing: IssuingFigures | undefined;
  conditions(this: void): Promise<readonly SeenCondition[]>;
  outboxes(this: void): Promise<readonly OutboxFigures[]>;
  subscriptions(this: void): Promise<Record<SubscriptionState, number>>;
}

/** The figures of the database that a snapshot may leave out. */
type Part = 'conditions' | 'outboxes' | 'subscriptions';

/**
 * Takes a snapshot, in the milliseconds given at most, even if the database hangs.
 *
 * @param parts those that are read. Outboxes and subscriptions take longer the more there is to count.
 */
export type TakeSnapshot = (withinMs: number, parts?: readonly Part[]) => Promise<Snapshot>;

/** @param sharing how long figures of the database are kept. By default no outdated ones are shown. */
export function createSnapshots(sources: SnapshotSources, sharing: Sharing): TakeSnapshot {
  const { issuing } = sources;
  const countMints = issuing && shared(issuing.countMints, sharing);
  const conditions = shared(sources.conditions, sharing);
  const outboxes = shared(sources.outboxes, sharing);
  const subscriptions = shared(sources.subscriptions, sharing);
  return async (withinMs, parts = ['conditions', 'outboxes', 'subscriptions']) => {
    const [mints, own, ...figures] = await Promise.all([
      countMints?.(withinMs),
      issuing?.ownFigures(),
      parts.includes('conditions') ? conditions(withinMs) : undefined,
      parts.includes('outboxes') ? outboxes(withinMs) : undefined,
      parts.includes('subscriptions') ? subscriptions(withinMs) : undefined,
    ]);
    return {
      now: sharing.time.now(),
      feeds: sources.feeds(),
      issuing: own && { mints, ...own },
      conditions: figures[0],
      outboxes: figures[1],
      subscriptions: figures[2],
    };
  };
}
