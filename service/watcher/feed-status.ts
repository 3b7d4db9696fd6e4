import type { CatchUp } from './catch-up';

/**
 * What a feed is doing:
 *
 * - starting: the registry has not been found on the chain yet; following: events are read; standby: another
 *   process reads them;
 * - failing: the node cannot be read, and is asked again; stopped: nobody but a person can make it go on.
 */
export type FeedState = 'starting' | 'following' | 'standby' | 'failing' | 'stopped';

/** How a feed is doing, for health and metrics. */
export interface FeedStatus {
  state: FeedState;
  /** When the state began, in epoch milliseconds. */
  since: number;
  /** The first block that has not been read. */
  nextBlock: number | undefined;
  /** The chain's newest block when it was last asked. */
  headBlock: number | undefined;
  /** Undefined while the newest blocks are read. */
  catchUp: CatchUp | undefined;
  /** Code and text of the error, when failing or stopped. */
  code: string | undefined;
  reason: string | undefined;
}

/** The status of a feed that is starting. */
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

/** Changes the state; `since` stays when it is the same. */
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
