import { join } from 'node:path';
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

/** The state and the database of each test of a suite on an engine. */
export interface OnEngine {
  state: State;
  database: Database;
}

/**
 * Runs a suite on each engine that is installed. Each test, or the suite as a whole, has new, empty state,
 * opened as the service does; the suite reads it from `on` in its hooks and tests.
 */
export function describeOnEngines(
  name: string,
  suite: (on: OnEngine, engine: Engine) => void,
  { isSharedByTests = false } = {},
): void {
  const [begin, end] = isSharedByTests ? [before, after] : [beforeEach, afterEach];
  for (const engine of ENGINES)
    describe(`${name} on ${engine}`, () => {
      const on: { state?: State | undefined; database?: Database | undefined } = {};

      begin(async function () {
        on.state = await newState(engine);
        if (on.state === undefined) return this.skip();
        on.database = await openState(on.state);
      });

      end(async () => {
        await on.database?.close();
        await on.state?.remove();
        on.database = on.state = undefined;
      });

      suite(on as OnEngine, engine);
    });
}
