import type { Clock } from '../base/clock';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { repeat } from '../base/pause';
import type { Database } from '../database/database';
import { dueChannels } from '../outbox/claim-queues';

/** The feed whose channels are woken, and the function that wakes them. */
export interface WakeDueOptions {
  database: Database;
  feed: string;
  clock: Clock;
  logger: Logger;
  wake(this: void, channels: readonly number[]): void;
}

/** Interval of the look-ups. It bounds the delay of events that another process enqueued. */
const LOOK_EVERY_MS = 1_000;

/**
 * Wakes the channels of a feed that have something to send. One statement finds all of them: with a statement
 * for each channel, hundreds of idle subscriptions would keep the database busy.
 *
 * @returns `stop`, which resolves after the current look-up.
 */
export function wakeDue({ database, feed, clock, logger, wake }: WakeDueOptions): { stop(): Promise<void> } {
  async function look(): Promise<void> {
    try {
      wake(await dueChannels(database.db, feed, clock.now()));
    } catch (error) {
      logger.error({ error }, `due deliveries cannot be looked for: ${messageOf(error)}`);
    }
  }
  return repeat(look, LOOK_EVERY_MS);
}
