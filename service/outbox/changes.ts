import type { Kysely, Transaction } from 'kysely';
import { type Time, repeat } from '../base/time';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/**
 * Tells every process that subscriptions or registries change. Call it first in the transaction of the
 * change: until the transaction ends, no process records events.
 */
export function noteChange(transaction: Transaction<Schema>): Promise<void> {
  return lockVersion(transaction, 1);
}

/**
 * Keeps subscriptions and registries as they are until the transaction ends. Transactions that call this run
 * one at a time, and none records events meanwhile. Call it before queues are locked.
 */
export function holdChanges(transaction: Transaction<Schema>): Promise<void> {
  return lockVersion(transaction, 0);
}

async function lockVersion(transaction: Transaction<Schema>, step: 0 | 1): Promise<void> {
  await transaction
    .updateTable('subscription_changes')
    .set((eb) => ({ version: eb('version', '+', step) }))
    .where('id', '=', 1)
    .execute();
}

/** The version, which each change of subscriptions or registries increments. */
export async function changeVersionOf(db: Kysely<Schema>): Promise<number> {
  const { version } = await db
    .selectFrom('subscription_changes')
    .select('version')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow(() => new Error('The database has lost the row of subscription_changes.'));
  return version;
}

/** A text that changes with every event and every change of a subscription. Both reads use a key. */
export async function movedSince(db: Kysely<Schema>): Promise<string> {
  const [last, version] = await Promise.all([
    db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst(),
    changeVersionOf(db),
  ]);
  return `${last?.id ?? 0} ${version}`;
}

const EVERY_MS = 1_000;

/**
 * Notices within a second that another process, such as a command, has changed subscriptions or registries.
 *
 * @param version the version that this process has read already.
 * @param onChange if it rejects, it is called again a second later.
 */
export function pollChanges(
  { db }: Pick<Database, 'db'>,
  options: { version: number; onChange: () => Promise<void>; time: Time; logger: Logger },
): { stop(): Promise<void> } {
  const { version, onChange, time, logger } = options;
  let known = version;
  let isFailing = false;
  return repeat(
    time,
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
