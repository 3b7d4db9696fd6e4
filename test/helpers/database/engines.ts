import { join } from 'node:path';
import { sql } from 'kysely';
import pino from 'pino';
import { systemTime } from '../../../service/base/time';
import type { Database } from '../../../service/database/database';
import { openDatabase } from '../../../service/database/open-database';
import { postgresDatabase } from './postgres';
import { owned } from '../resources';
import { temporaryFolder } from '../temporary-folder';

/** The state of a test. */
export interface State extends AsyncDisposable {
  /** Settings for the service. */
  settings: { DATA_DIR: string; DATABASE_URL?: string };
}

/** The engines on which everything about state is tested. */
export const ENGINES = ['SQLite', 'PostgreSQL'] as const;
export type Engine = (typeof ENGINES)[number];

/** New, empty state on an engine. Undefined if the engine is not installed. */
export async function newState(engine: Engine): Promise<State | undefined> {
  const database = engine === 'SQLite' ? undefined : await postgresDatabase();
  if (engine === 'PostgreSQL' && database === undefined) return undefined;
  const folder = temporaryFolder();
  return {
    settings: { DATA_DIR: join(folder.path, 'data'), ...(database && { DATABASE_URL: database.url }) },
    async [Symbol.asyncDispose]() {
      database?.drop();
      folder.remove();
    },
  };
}

/** Opens the state as the service does. */
export async function openState({ settings }: Pick<State, 'settings'>): Promise<Database & AsyncDisposable> {
  const location = { dataDir: settings.DATA_DIR, databaseUrl: settings.DATABASE_URL };
  const database = await openDatabase(systemTime, location, pino({ level: 'silent' }));
  return owned(`the open database of ${settings.DATA_DIR}`, database, 'close');
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

      before(async function () {
        on.state = await newState(engine);
        if (on.state === undefined) return this.skip();
        on.database = await openState(on.state);
      });

      if (!isSharedByTests) afterEach(() => removeRows(on.database as Database, engine));

      suite(on as OnEngine, engine);
    });
}

/** Tables of which migrations add a row. The version tells a process which subscriptions it read. */
const FILLED_BY_MIGRATIONS = ['subscription_changes', 'cursor_keys'];

/** Removes all rows but those that migrations add. */
export async function removeRows({ db }: Pick<Database, 'db'>, engine: Engine): Promise<void> {
  const tables = (await db.introspection.getTables()).map(({ name }) => name);
  const filled = tables.filter((name) => !FILLED_BY_MIGRATIONS.includes(name));
  if (engine === 'PostgreSQL') await sql.raw(`truncate ${filled.join(', ')}`).execute(db);
  else for (const name of filled) await sql.raw(`delete from ${name}`).execute(db);
  await db
    .updateTable('subscription_changes')
    .set((eb) => ({ version: eb('version', '+', 1) }))
    .execute();
}
