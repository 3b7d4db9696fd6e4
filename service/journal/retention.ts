import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock';
import { messageOf } from '../errors';
import type { Logger } from '../logger';
import type { Journal } from './journal';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** What is kept how long. */
export interface RetentionOptions {
  journal: Pick<Journal, 'purge'>;
  /** Days after which a document is removed that is mined or failed; undefined: never. */
  days: number | undefined;
  clock: Clock;
  logger: Logger;
  /** Milliseconds between two looks. */
  everyMs?: number;
}

/**
 * The time (epoch milliseconds) before which documents must have ended to be removed; nothing ended before 0.
 */
export function endedBefore(days: number | undefined, now: number): number {
  return days === undefined ? 0 : now - days * DAY_MS;
}

/**
 * Removes documents when their time has come, now and every hour, and always what a crash left of documents
 * that never got an issuance. A look that fails is made again an hour later.
 *
 * @returns what stops it; a look that is under way is waited for.
 */
export function startRetention(options: RetentionOptions): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const { signal } = stopped;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      await purge(options);
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

async function purge({ journal, days, clock, logger }: RetentionOptions): Promise<void> {
  try {
    const documents = await journal.purge(endedBefore(days, clock.now()));
    if (documents > 0) logger.info({ documents, days }, 'issued documents removed');
  } catch (error) {
    logger.warn({ error }, `issued documents could not be removed: ${messageOf(error)}`);
  }
}
