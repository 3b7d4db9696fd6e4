import { openSqlite } from '../service/database/open-sqlite';
import { migrate } from '../service/database/migrate';
import { openPostgres } from '../service/database/open-postgres';
import type { Database } from '../service/database/database';
import { createLogger, type Logger } from '../service/base/logger';
import { postgresDatabase } from '../test/helpers/database/postgres';
import { temporaryFolder } from '../test/helpers/temporary-folder';

/** A logger that prints nothing. */
export const silent: Logger = createLogger({ level: 'silent', mask: (text) => text });

/** Runs `use` with a new database and removes it afterwards. Does nothing if the engine is not installed. */
export type WithDatabase = (use: (database: Database) => Promise<void>) => Promise<void>;

/** The database engines; each entry runs a function with a new database. */
export const ENGINES: readonly WithDatabase[] = [withSqlite, withPostgres];

async function withSqlite(use: (database: Database) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const database = await openSqlite(folder.path);
  try {
    await use(database);
  } finally {
    await database.close();
    folder.remove();
  }
}

async function withPostgres(use: (database: Database) => Promise<void>): Promise<void> {
  const postgres = await postgresDatabase();
  if (!postgres) return;
  const database = await openPostgres(postgres.url, migrate, silent);
  try {
    await use(database);
  } finally {
    await database.close();
    postgres.drop();
  }
}
