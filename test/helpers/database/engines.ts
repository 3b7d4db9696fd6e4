import { join } from 'node:path';
import { sql } from 'kysely';
import pino from 'pino';
import type { Database } from '../../../service/database/database';
import { openDatabase } from '../../../service/database/open-database';
import { postgresDatabase } from './postgres';
import { temporaryFolder } from '../temporary-folder';

/** The state of a test, and the function that removes it. */
export interface State {
  /** Settings for the service. */
  settings: { DATA_DIR: string; DATABASE_URL?: string };
  remove(): Promise<void>;
}

/** The engines on which everything about state is tested. */
export const ENGINES = ['SQLite', 'PostgreSQL'] as const;
export type Engine = (typeof ENGINES)[number];

/** New, empty state on an engine. Undefined if the engine is not installed. */
export async function newState(engine: Engine): Promise<State | undefined> {
  const folder = temporaryFolder();
  const DATA_DIR = join(folder.path, 'data');
  if (engine === 'SQLite') return { settings: { DATA_DIR }, remove: async () => folder.remove() };
  const database = await postgresDatabase();
  if (database === undefined) {
    folder.remove();
    return undefined;
  }
  return {
    settings: { DATA_DIR, DATABASE_URL: database.url },
    async remove() {
      database.drop();
      folder.remove();
    },
  };
}

/** Opens the state as the service does. */
export function openState({ settings }: State): Promise<Database> {
  const location = { dataDir: settings.DATA_DIR, databaseUrl: settings.DATABASE_URL };
  return openDatabase(location, pino({ level: 'silent' }));
}

/** The state and the open database of a suite on an engine. */
export interface OnEngine {
  state: State;
  database: Database;
}

/**
 * Runs a suite on each engine that is installed, with state that is opened as the service does. Each test has
 * an empty database, unless the tests of the suite share its rows. It is the same database without the rows
 * of the test before: to create and migrate one takes longer than most tests.
 */
export function describeOnEngines(
  name: string,
  suite: (on: OnEngine, engine: Engine) => void,
  { isSharedByTests = false } = {},
): void {
  for (const engine of ENGINES)
    describe(`${name} on ${engine}`, () => {
      const on: { state?: State | undefined; database?: Database } = {};
      let tables: string[];

      before(async function () {
        on.state = await newState(engine);
        if (on.state === undefined) return this.skip();
        on.database = await openState(on.state);
        tables = (await on.database.db.introspection.getTables()).map(({ name }) => name);
      });

      if (!isSharedByTests) afterEach(() => removeRows(tables, on.database as Database, engine));

      after(async () => {
        await on.database?.close();
        await on.state?.remove();
      });

      suite(on as OnEngine, engine);
    });
}

/** Leaves the row that a migration adds: the version by which a process knows which subscriptions it read. */
async function removeRows(tables: readonly string[], { db }: Database, engine: Engine): Promise<void> {
  const filled = tables.filter((name) => name !== 'subscription_changes');
  if (engine === 'PostgreSQL') await sql.raw(`truncate ${filled.join(', ')}`).execute(db);
  else for (const name of filled) await sql.raw(`delete from ${name}`).execute(db);
  await db
    .updateTable('subscription_changes')
    .set((eb) => ({ version: eb('version', '+', 1) }))
    .execute();
}
