import type { CatchUp } from './catch-up';

/**
 * State of a feed:
 *
 * - starting: the registry has not been found on the chain yet;
 * - following: events are read;
 * - standby: another process reads them;
 * - failing: the node cannot be read; it is retried;
 * - stopped: an operator has to intervene.
 */
export type FeedState = 'starting' | 'following' | 'standby' | 'failing' | 'stopped';

/** The status of a feed, for health and metrics. */
export interface FeedStatus {
  state: FeedState;
  /** Start of the state, in epoch milliseconds. */
  since: number;
  /** The first block that has not been read. */
  nextBlock: number | undefined;
  /** The chain's newest block at the last request. */
  headBlock: number | undefined;
  /** Undefined while the feed is up to date. */
  catchUp: CatchUp | undefined;
  /** Code and text of the error in the states failing and stopped. */
  code: string | undefined;
  reason: string | undefined;
}

/** The initial status of a feed. */
export function newFeedStatus(now: number): FeedStatus {
  return {
    state: 'starting',
    since: now,
    nextBlock: undefined,
    headBlock: undefined,
    catchUp: undefined,
    code: undefined,
    reason: undefined,
  };
}

/** Sets the state. `since` is kept if the state does not change. */
export function setState(
  status: FeedStatus,
  state: FeedState,
  now: number,
  error?: { code: string | undefined; reason: string },
): void {
  if (status.state !== state) status.since = now;
  status.state = state;
  status.code = error?.code;
  status.reason = error?.reason;
}
