import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';
import type { FeedStatus } from './feed-status';

/** A reading that has not reached the newest blocks yet. */
export interface CatchUp {
  /** The blocks to read. The last grows with the chain. */
  fromBlock: number;
  toBlock: number;
  /** Epoch milliseconds. */
  since: number;
}

/** How far a catch-up is. */
export interface CatchUpProgress {
  blocksRead: number;
  /** All blocks of the catch-up. */
  blocks: number;
  blocksPerSecond: number;
  /** Undefined while nothing has been read. */
  secondsLeft: number | undefined;
}

/** Follows a feed's catch-ups, and logs how far they are. */
export interface CatchUpReport {
  /** To be called when `status.nextBlock`, or the last block to read, may have changed. */
  seen(lastBlock: number): void;
  /** Ends a catch-up that is not read on, and logs nothing. */
  forget(): void;
  stop(): void;
}

/** A few blocks that came together are read sooner: they are no catch-up. */
const SHORTEST_MS = 1_000;

/** How far a feed's catch-up is; undefined when there is none, or it has just begun. */
export function progressOf(
  { catchUp, nextBlock }: Pick<FeedStatus, 'catchUp' | 'nextBlock'>,
  now: number,
): CatchUpProgress | undefined {
  if (catchUp === undefined || nextBlock === undefined) return undefined;
  const milliseconds = now - catchUp.since;
  if (milliseconds < SHORTEST_MS) return undefined;
  const blocksRead = nextBlock - catchUp.fromBlock;
  const blocks = catchUp.toBlock + 1 - catchUp.fromBlock;
  const rate = (1000 * blocksRead) / milliseconds;
  return {
    blocksRead,
    blocks,
    blocksPerSecond: Math.round(10 * rate) / 10,
    secondsLeft: rate > 0 ? Math.ceil((blocks - blocksRead) / rate) : undefined,
  };
}

/** Keeps `status.catchUp`, and logs how far it is, every so many milliseconds and when it is over. */
export function reportCatchUp(
  status: FeedStatus,
  { clock, logger, progressEveryMs }: { clock: Clock; logger: Logger; progressEveryMs: number },
): CatchUpReport {
  let isTold = false;
  const timer = setInterval(() => {
    const progress = progressOf(status, clock.now());
    if (progress === undefined) return;
    isTold = true;
    logger.info({ nextBlock: status.nextBlock, ...progress }, 'catching up with the chain');
  }, progressEveryMs);
  return {
    seen(lastBlock) {
      const { catchUp, nextBlock = 0 } = status;
      const now = clock.now();
      if (nextBlock <= lastBlock) {
        const { fromBlock = nextBlock, since = now } = catchUp ?? {};
        // A reorganisation may lead to a block before the first.
        status.catchUp = { fromBlock: Math.min(fromBlock, nextBlock), toBlock: lastBlock, since };
        return;
      }
      status.catchUp = undefined;
      if (!isTold || catchUp === undefined) return;
      isTold = false;
      const figures = { blocks: nextBlock - catchUp.fromBlock, seconds: (now - catchUp.since) / 1000 };
      logger.info(figures, 'caught up with the chain');
    },
    forget() {
      status.catchUp = undefined;
      isTold = false;
    },
    stop() {
      clearInterval(timer);
      status.catchUp = undefined;
    },
  };
}
