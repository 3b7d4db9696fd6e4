import type { Clock } from '../base/clock';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { repeat } from '../base/pause';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Describes the records to remove, and their retention. */
export interface RetentionOptions {
  /** Name of the records in the log, such as "issued documents". */
  what: string;
  /**
   * Removes records that ended before a time (epoch milliseconds) and resolves to their number. It may end
   * early when the signal aborts.
   */
  purge: (before: number, signal: AbortSignal) => Promise<number>;
  /** Days after which records are removed; undefined to keep them forever. */
  days: number | undefined;
  clock: Clock;
  logger: Logger;
  /** Milliseconds between two runs. */
  everyMs?: number;
}

/**
 * The time (epoch milliseconds) before which a removed record ended. It is 0 without a retention, because
 * nothing ended before 0.
 */
export function overBefore(days: number | undefined, now: number): number {
  return days === undefined ? 0 : now - days * DAY_MS;
}

/**
 * Removes old records now and every hour. A failed run is repeated an hour later.
 *
 * @returns `stop`, which resolves after a current run has ended.
 */
export function startRetention(options: RetentionOptions): { stop(): Promise<void> } {
  return repeat((signal) => removeOld(options, signal), options.everyMs ?? HOUR_MS);
}

async function removeOld(
  { what, purge, days, clock, logger }: RetentionOptions,
  signal: AbortSignal,
): Promise<void> {
  try {
    const removed = await purge(overBefore(days, clock.now()), signal);
    if (removed > 0) logger.info({ removed, days }, `${what} removed`);
  } catch (error) {
    logger.warn({ error }, `${what} could not be removed: ${messageOf(error)}`);
  }
}
