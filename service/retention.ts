import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './base/clock';
import { messageOf } from './base/errors';
import type { Logger } from './base/logger';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** What is kept how long. */
export interface RetentionOptions {
  /** As the log calls it: "issued documents". */
  what: string;
  /**
   * Removes what ended before a time (epoch milliseconds), and gives how many; may end early when the signal
   * aborts.
   */
  purge: (before: number, signal: AbortSignal) => Promise<number>;
  /** Days after which it is removed; undefined: never. */
  days: number | undefined;
  clock: Clock;
  logger: Logger;
  /** Milliseconds between two looks. */
  everyMs?: number;
}

/** The time (epoch milliseconds) before which what is removed ended. Nothing ended before 0. */
export function overBefore(days: number | undefined, now: number): number {
  return days === undefined ? 0 : now - days * DAY_MS;
}

/**
 * Removes what is old enough, now and every hour. A look that fails is made again an hour later.
 *
 * @returns what stops it; a look that is under way is waited for.
 */
export function startRetention(options: RetentionOptions): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const { signal } = stopped;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      await look(options, signal);
      await sleep(options.everyMs ?? HOUR_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  const finished = run();
  return {
    async stop() {
      stopped.abort();
      await finished;
    },
  };
}

async function look(
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
