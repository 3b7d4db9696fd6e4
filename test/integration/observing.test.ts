import { lookup } from 'node:dns';
import { join } from 'node:path';
import { expect } from 'chai';
import { Kysely, sql } from 'kysely';
import Sqlite from 'libsql';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import { codeOf } from '../../service/base/errors';
import { createLogger } from '../../service/base/logger';
import { startObserving } from '../../service/composition/observing';
import { loadConfig } from '../../service/config/config';
import type { Database } from '../../service/database/database';
import type { Schema } from '../../service/database/schema';
import { sqliteDialect } from '../../service/database/sqlite-driver';
import { createMetrics } from '../../service/observability/metrics';
import { newState, openState, type Engine, type State } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { owned, stopLater } from '../helpers/resources';

const KIND = 'database_unwritable';

/** Starts it over a database. Its log lines go to `log`. */
function observe(state: State, database: Database) {
  const log: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void log.push(JSON.parse(line) as (typeof log)[0]) };
  const lifecycle = createLifecycle();
  const ENV_FILE = join(state.settings.DATA_DIR, 'none.env');
  const core = {
    config: loadConfig({ ...state.settings, ENV_FILE, NET: '31337' }),
    database,
    time: systemTime,
    lifecycle,
    logger: createLogger({ level: 'info', mask: (text) => text, destination }),
    lookup,
  };
  const eventDelivery = { feeds: () => [], feedOf: () => undefined, figures: async () => [] };
  const lines = { issuing: undefined, eventDelivery: eventDelivery as never };
  const observing = startObserving(core, createMetrics(lifecycle), lines);
  return { ...owned('the observation', observing, 'stop'), log };
}

describe('the observation', () => {
  it('logs that the conditions cannot be read, and answers without them', async () => {
    const state = (await newState('SQLite'))!;
    const database = await openState(state);
    await sql`drop table conditions`.execute(database.db);
    const { log, ...observing } = observe(state, database);
    const health = await observing.health().finally(() => observing.stop());
    expect(health).to.include({ status: 'ok', conditions: undefined });
    const lines = log.filter(({ msg }) => msg === 'the conditions cannot be read');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.deep.include({ level: 'warn' }).and.have.nested.property('error.message');
  });
});

/** Ways in which a database refuses to store anything, and the code of each. */
const REFUSALS: Record<string, { engine: Engine; code: string; begin: Change; end: Change }> = {
  'is full': { engine: 'SQLite', code: 'DATABASE_FULL', begin: fill, end: makeRoom },
  'is read-only': {
    engine: 'SQLite',
    code: 'DATABASE_READ_ONLY',
    begin: async (_, file) => void file?.pragma('query_only = on'),
    end: async (_, file) => void file?.pragma('query_only = off'),
  },
  'is on a full disk': {
    engine: 'PostgreSQL',
    code: '53100',
    async begin({ db }) {
      await sql`create function refuse() returns trigger language plpgsql as $$ begin
        raise exception 'could not extend file: No space left on device' using errcode = '53100';
      end $$`.execute(db);
      await sql`create trigger refuse before insert on conditions execute function refuse()`.execute(db);
    },
    end: async ({ db }) => void (await sql`drop trigger refuse on conditions`.execute(db)),
  },
  'has become a read-only standby': {
    engine: 'PostgreSQL',
    code: 'DATABASE_READ_ONLY',
    begin: (database) => allowWriting(database, false),
    end: (database) => allowWriting(database, true),
  },
};

/** `file`: the connection of SQLite. */
type Change = (database: Database, file?: Sqlite.Database) => Promise<void>;

/** Lets the file have no more pages, and uses those that it has. */
async function fill({ db }: Database): Promise<void> {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
  await sql.raw(`pragma max_page_count = ${rows[0]?.page_count ?? 0}`).execute(db);
  const added = async (scope: number): Promise<boolean> =>
    db
      .insertInto('journal_chains')
      .values({ scope: String(scope), genesis_hash: 'x'.repeat(1_000) })
      .execute()
      .then(
        () => true,
        (error: unknown) => codeOf(error) !== 'DATABASE_FULL',
      );
  for (let scope = 0; await added(scope); scope++);
}

async function makeRoom({ db }: Database): Promise<void> {
  await sql`pragma max_page_count = 1000000`.execute(db);
}

/** The connections that are open go on as they are, so they are closed. */
async function allowWriting({ db }: Database, isAllowed: boolean): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(db);
  const setting = `default_transaction_read_only = ${isAllowed ? 'off' : 'on'}`;
  await db.connection().execute(async (one) => {
    await sql`set default_transaction_read_only = off`.execute(one);
    await sql.raw(`alter database ${rows[0]?.name} set ${setting}`).execute(one);
  });
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.execute(db);
  await sql`select pg_terminate_backend(pg_backend_pid())`.execute(db).catch(() => undefined);
}

/** Opens the state, with the connection of SQLite. */
async function openWithFile(state: State, engine: Engine): Promise<[Database, Sqlite.Database?]> {
  const database = await openState(state);
  if (engine === 'PostgreSQL') return [database];
  const file = new Sqlite(join(state.settings.DATA_DIR, 'state.sqlite'));
  stopLater('the connection of SQLite', () => file.close());
  return [{ ...database, db: new Kysely<Schema>({ dialect: sqliteDialect(systemTime, file, 1_000) }) }, file];
}

describe('a database that can be read and not be written', () => {
  for (const [what, { engine, code, begin, end }] of Object.entries(REFUSALS))
    it(`is a condition without a row while ${engine} ${what}, and ends with that`, async function () {
      const state = await newState(engine);
      if (state === undefined) return this.skip();
      const [database, file] = await openWithFile(state, engine);
      await begin(database, file);
      const { log, ...observing } = observe(state, database);
      const found = async () => (await observing.sources.conditions()).filter(({ what }) => what === KIND);
      const logged = (level: string) => log.filter((line) => line.what === KIND && line.level === level);
      const [condition] = await eventually('it is seen', async () => {
        const all = await found();
        return all.length > 0 ? all : undefined;
      });
      expect(condition).to.deep.include({ subject: 'database', detail: { code } });
      const { database: health, conditions = [] } = await eventually('health has it', async () => {
        const report = await observing.health();
        return report.conditions?.length === 0 ? undefined : report;
      });
      expect([health, conditions.length]).to.deep.equal(['unwritable', 1]);
      expect(conditions[0]).to.include({ what: KIND, severity: 'error' });
      expect(await observing.metrics()).to.contain(`etr_conditions{what="${KIND}"} 1`);
      expect(logged('warn')).to.have.length(1);

      await end(database, file);
      // A connection that was closed is replaced.
      await eventually('it has ended', async () => (await found().catch(() => [1])).length === 0);
      expect((await observing.health()).database).to.equal(undefined);
      expect(logged('info')).to.have.length(1);
      expect(await database.db.selectFrom('conditions').selectAll().execute()).to.deep.equal([]);
    });
});
