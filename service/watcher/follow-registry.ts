import { ServiceError, codeOf, messageOf } from '../base/errors';
import { pause } from '../base/waiting';
import { setState, type FeedStatus } from './feed-status';
import { followFeed, newFeedMemory, type FeedMemory, type FeedFollowing } from './follow-feed';

/** A registry that is being followed. */
export interface Follower {
  readonly status: Readonly<FeedStatus>;
  /** Reads a block again after it has been read, because an event of its transactions is missing. */
  readAgain(this: void, block: number): void;
  /** Stops reading; resolves when the events being stored are stored. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** How often a standby process checks whether the feed has become free. */
const STANDBY_MS = 2_000;

/**
 * Reads the registry's events from the stored cursor and stores them, until it is stopped. If the node fails,
 * it is retried from the same cursor after a growing pause. An error that only an operator can fix is logged
 * and ends this.
 */
export function followRegistry(options: FeedFollowing): Follower {
  const abort = new AbortController();
  const memory = newFeedMemory(options);
  const finished = run(options, memory, abort.signal).finally(() => memory.catchUp.stop());
  return {
    status: memory.status,
    readAgain(block) {
      memory.again.add(block);
      memory.wake();
    },
    async stop() {
      abort.abort();
      await finished;
    },
  };
}

async function run(options: FeedFollowing, memory: FeedMemory, signal: AbortSignal): Promise<void> {
  const { logger, clock } = options;
  const { status } = memory;
  let failures = 0;
  const onRead = (): void => {
    if (failures > 0) logger.info('the chain can be read again');
    failures = 0;
    setState(status, 'following', clock.now());
  };
  while (!signal.aborted) {
    try {
      const ended = await followFeed(options, memory, onRead, signal);
      if (ended !== 'standby') continue;
      if (status.state !== 'standby') logger.info('another process reads this registry: standing by');
      setState(status, 'standby', clock.now());
      await pause(STANDBY_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      // The status is public, so errors of other code are shown only as "see the log".
      const shown = error instanceof ServiceError ? options.mask(reason) : 'see the log';
      const described = { code: codeOf(error), reason: shown };
      if (error instanceof ServiceError && !error.retryable) {
        setState(status, 'stopped', clock.now(), described);
        logger.fatal({ error, code: error.code }, `events of the registry are no longer read: ${reason}`);
        return;
      }
      setState(status, 'failing', clock.now(), described);
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LONGEST_PAUSE_MS);
      logger.warn({ error, retryInMs: pauseMs }, `the chain cannot be read: ${reason}`);
      await pause(pauseMs, signal);
    }
  }
}
