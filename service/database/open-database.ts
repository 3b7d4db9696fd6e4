import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import type { Database } from './database';
import { expectMigrated, migrate } from './migrate';
import { openPostgres } from './open-postgres';
import { openSqlite, openSqliteBesideService } from './open-sqlite';

/** Location of the service's database. */
interface DatabaseLocation {
  /** PostgreSQL; undefined: SQLite in `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
}

/** Opens the service's database and brings its tables up to date. */
export function openDatabase(
  time: Time,
  { databaseUrl, dataDir }: DatabaseLocation,
  logger: Logger,
): Promise<Database> {
  return databaseUrl === undefined
    ? openSqlite(dataDir, { time, logger })
    : openPostgres(time, databaseUrl, migrate, logger);
}

/** Opens the service's database for a command. The service may be running. */
export function openDatabaseBesideService(
  time: Time,
  { databaseUrl, dataDir }: DatabaseLocation,
): Promise<Database> {
  return databaseUrl === undefined
    ? openSqliteBesideService(time, dataDir)
    : openPostgres(time, databaseUrl, expectMigrated);
}
