import { Migrator, type Kysely } from 'kysely';
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
 * @throws ServiceError MIGRATION_FAILED
 */
export async function migrate(db: Kysely<Schema>): Promise<void> {
  const { error } = await migratorOf(db).migrateToLatest();
  if (error === undefined) return;
  throw new ServiceError('MIGRATION_FAILED', `The database cannot be migrated: ${messageOf(error)}`, {
    cause: error,
  });
}

/**
 * For commands that use the database of a service that may be running: they must not change its tables.
 *
 * @throws ConfigurationError DATABASE_NOT_MIGRATED if the tables are of another version.
 */
export async function expectMigrated(db: Kysely<Schema>): Promise<void> {
  const known = await migratorOf(db).getMigrations();
  if (known.every(({ executedAt }) => executedAt !== undefined)) return;
  const remedy = 'Start the service once: `npm run service`.';
  throw new ConfigurationError(
    'DATABASE_NOT_MIGRATED',
    `The database has not been used by this version yet. ${remedy}`,
    { remedy },
  );
}
