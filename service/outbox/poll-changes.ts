import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { repeat } from '../base/pause';
import type { Database } from '../database/database';
import { changeVersionOf } from './change-version';

const EVERY_MS = 1_000;

/**
 * Notices within a second that another process, such as a command, has changed subscriptions or registries.
 *
 * @param version the version that this process has read already.
 * @param onChange if it rejects, it is called again a second later.
 */
export function pollChanges(
  { db }: Pick<Database, 'db'>,
  { version, onChange, logger }: { version: number; onChange: () => Promise<void>; logger: Logger },
): { stop(): Promise<void> } {
  let known = version;
  let isFailing = false;
  return repeat(
    async () => {
      try {
        const current = await changeVersionOf(db);
        if (current !== known) await onChange();
        known = current;
        isFailing = false;
      } catch (error) {
        if (!isFailing) logger.warn({ error }, `changes cannot be read: ${messageOf(error)}`);
        isFailing = true;
      }
    },
    EVERY_MS,
    EVERY_MS,
  );
}
