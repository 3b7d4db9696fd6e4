import { DEFAULT_MIGRATION_TABLE, Migrator, PostgresAdapter, sql, type Kysely } from 'kysely';
import { ConfigurationError, ServiceError, messageOf } from '../base/errors';
import { migrations } from './migrations/all';
import type { Schema } from './schema';

function migratorOf(db: Kysely<Schema>): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => migrations } });
}

/**
 * Migrates the tables to the latest version. Processes that start together on PostgreSQL wait for each other
 * (Kysely takes a lock).
 *
 * @param place for messages.
 * @throws ConfigurationError DATABASE_NEWER
 * @throws ServiceError MIGRATION_FAILED
 */
export async function migrate(db: Kysely<Schema>, place: string): Promise<void> {
  if (await isMigrated(db, place)) return;
  const { error } = await migratorOf(db).migrateToLatest();
  if (error === undefined) return;
  const remedy = 'It is unchanged: run the version before, or restore a backup.';
  const message = `The database ${place} cannot be migrated: ${messageOf(error)}. ${remedy}`;
  throw new ServiceError('MIGRATION_FAILED', message, { cause: error, remedy });
}

/**
 * For commands that use the database of a service that may be running: they must not change its tables.
 *
 * @param place for messages.
 * @throws ConfigurationError DATABASE_NOT_MIGRATED or DATABASE_NEWER if the tables are of another version;
 *   MIGRATION_FAILED if the service may not change them.
 */
export async function expectMigrated(db: Kysely<Schema>, place: string): Promise<void> {
  if (await isMigrated(db, place)) return;
  const remedy = 'Start the service once: `npm run service`.';
  const message = `The database ${place} has not been used by this version yet. ${remedy}`;
  throw new ConfigurationError('DATABASE_NOT_MIGRATED', message, { remedy });
}

/**
 * Whether all migrations were executed. Others can be: since PostgreSQL 15 only the owner of a database may
 * create tables in its schema public.
 *
 * @throws ConfigurationError DATABASE_NEWER, MIGRATION_FAILED.
 */
async function isMigrated(db: Kysely<Schema>, place: string): Promise<boolean> {
  const executed = await executedIn(db, place);
  if (Object.keys(migrations).every((name) => executed.includes(name))) return true;
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) return false;
  const { rows } = await sql<{ needed: string }>`
    select format('GRANT USAGE, CREATE ON SCHEMA %I TO %I;', schema, current_user) as needed
    from coalesce(current_schema(), 'public') as schema
    where not (has_schema_privilege(schema, 'usage') and has_schema_privilege(schema, 'create'))`.execute(db);
  if (rows[0] === undefined) return false;
  const remedy = `Let the owner of the database run: ${rows[0].needed}`;
  const message = `The database ${place} cannot be migrated: its role may not create tables. ${remedy}`;
  throw new ConfigurationError('MIGRATION_FAILED', message, { remedy });
}

/** The names of the migrations that were executed. @throws ConfigurationError DATABASE_NEWER */
async function executedIn(db: Kysely<Schema>, place: string): Promise<string[]> {
  const known = await migratorOf(db).getMigrations();
  if (known.every(({ executedAt }) => executedAt === undefined)) return [];
  const recorded = db.withTables<{ [DEFAULT_MIGRATION_TABLE]: { name: string } }>();
  const rows = await recorded.selectFrom(DEFAULT_MIGRATION_TABLE).select('name').execute();
  const executed = rows.map(({ name }) => name);
  const unknown = executed.find((name) => !(name in migrations));
  if (unknown === undefined) return executed;
  const remedy = 'Run that version, or restore a backup from before it was first run.';
  const message = `A newer version of the service has used the database ${place} (${unknown}). ${remedy}`;
  throw new ConfigurationError('DATABASE_NEWER', message, { remedy });
}
