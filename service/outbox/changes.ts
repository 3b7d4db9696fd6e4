import { sql, type Kysely, type Transaction } from 'kysely';
import { type Time, repeat } from '../base/time';
import { loggedOnce, type Logger } from '../base/logger';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/** Changes that are kept. A process that missed more reads all subscriptions again. */
const MOST_CHANGES = 10_000;

/**
 * The subject of a change of registries, and of one that may concern all subscriptions. The subject of any
 * other change is the name of a subscription.
 */
export const REGISTRIES = 'registries';
export const ALL_SUBSCRIPTIONS = 'all';

/**
 * Tells every process of a change. Call it first in the transaction of the change: until the transaction
 * ends, no process records events.
 */
export async function noteChange(transaction: Transaction<Schema>, subject: string): Promise<void> {
  await sql`update subscription_changes set version = version + 1`.execute(transaction);
  await sql`insert into subscription_change_log (version, subject)
    select version, ${subject} from subscription_changes`.execute(transaction);
  await sql`delete from subscription_change_log
    where version <= (select version - ${MOST_CHANGES} from subscription_changes)`.execute(transaction);
}

/** The changes up to a version. */
export interface Changes {
  version: number;
  /** Undefined: anything may have changed. */
  subjects: ReadonlySet<string> | undefined;
}

/** The version of a process that has read no subscription yet. */
export const NO_VERSION = -1;

/** Reads the changes after the version `known` up to `version`, which defaults to the present one. */
export async function changesSince(db: Kysely<Schema>, known: number, version?: number): Promise<Changes> {
  const present = version ?? (await changeVersionOf(db));
  if (present === known) return { version: present, subjects: new Set() };
  const rows = await db
    .selectFrom('subscription_change_log')
    .select('subject')
    .where('version', '>', known)
    .where('version', '<=', present)
    .execute();
  const subjects = new Set(rows.map(({ subject }) => subject));
  // Some are not kept any more, or were made by an earlier version of the service, which kept none.
  const isComplete = rows.length === present - known && !subjects.has(ALL_SUBSCRIPTIONS);
  return { version: present, subjects: isComplete ? subjects : undefined };
}

/**
 * Keeps subscriptions and registries as they are until the transaction ends. Transactions that call this run
 * one at a time, and none records events meanwhile. Call it before queues are locked.
 */
export async function holdChanges(transaction: Transaction<Schema>): Promise<void> {
  await sql`update subscription_changes set version = version`.execute(transaction);
}

/** The version, which each change of subscriptions or registries increments. */
export async function changeVersionOf(db: Kysely<Schema>): Promise<number> {
  return versionIn(await versions(db).execute());
}

/** Reads the version. Until the transaction ends, nothing increments it, and others may read it so too. */
export async function lockVersion(transaction: Transaction<Schema>): Promise<number> {
  return versionIn((await lockedVersion(transaction, {})).rows);
}

const lockedVersion = compiled((db, _: object, engine) =>
  versions(db).$if(engine === 'postgres', (query) => query.forShare()),
);

function versions(db: Kysely<Schema>) {
  return db.selectFrom('subscription_changes').select('version').where('id', '=', 1);
}

function versionIn([row]: readonly { version: number }[]): number {
  if (row === undefined) throw new Error('The database has lost the row of subscription_changes.');
  return row.version;
}

/** A text that changes with every event and every change of a subscription. Both reads use a key. */
export async function movedSince(db: Kysely<Schema>): Promise<string> {
  const [last, version] = await Promise.all([
    db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst(),
    changeVersionOf(db),
  ]);
  return `${last?.id ?? 0} ${version}`;
}

const EVERY_MS = 500;

/**
 * Notices soon that another process, such as a command, has changed subscriptions or registries.
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
  const look = loggedOnce(logger, 'changes cannot be read', async () => {
    const current = await changeVersionOf(db);
    if (current !== known) await onChange();
    known = current;
  });
  return repeat(time, look, EVERY_MS, EVERY_MS);
}
