import { expect } from 'chai';
import { sql } from 'kysely';
import pino from 'pino';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { openDatabase, openDatabaseBesideService } from '../../service/database/open-database';
import { startPgBouncer } from '../helpers/database/pgbouncer';
import { postgresDatabase, type PostgresDatabase } from '../helpers/database/postgres';
import { errorOf } from '../helpers/error-of';
import { eventually } from '../helpers/eventually';
import { owned } from '../helpers/resources';

describe('a database behind PgBouncer', () => {
  let database: PostgresDatabase;

  before(async function () {
    const made = await postgresDatabase();
    const pooler = made && (await startPgBouncer(made.url, { pool_mode: 'session' }));
    if (pooler === undefined) return this.skip();
    database = made as PostgresDatabase;
  });

  async function urlOf(settings: Record<string, string | number>): Promise<string> {
    const pooler = await startPgBouncer(database.url, settings);
    expect(pooler).to.not.equal(undefined);
    return pooler?.url ?? '';
  }

  async function open(databaseUrl: string): Promise<Database & AsyncDisposable> {
    const opened = await openDatabase(systemTime, { databaseUrl, dataDir: '' }, pino({ level: 'silent' }));
    return owned(`the database at ${databaseUrl}`, opened, 'close');
  }

  const besideService = (databaseUrl: string): Promise<Database> =>
    openDatabaseBesideService(systemTime, { databaseUrl, dataDir: '' });

  const settingOf = async ({ db }: Database, name: string): Promise<string | undefined> => {
    const { rows } = await sql<{ value: string }>`select current_setting(${name}) as value`.execute(db);
    return rows[0]?.value;
  };

  it('that pools sessions can be used, with time limits of statements and transactions', async () => {
    const url = await urlOf({ pool_mode: 'session' });
    await using first = await open(url);
    expect(await settingOf(first, 'statement_timeout')).to.equal('30s');
    expect(await settingOf(first, 'idle_in_transaction_session_timeout')).to.equal('30s');
    // A statement of migrations has no limit, and its connection of the pooler is used again.
    for (let one = 0; one < 3; one++) {
      await using next = await open(url);
      expect(await settingOf(next, 'statement_timeout')).to.equal('30s');
    }
  });

  it('that pools sessions gives a right to one process at a time', async () => {
    const url = await urlOf({ pool_mode: 'session' });
    await using first = await open(url);
    await using second = await open(url);
    const right = await first.takeRight('feed');
    expect(await second.takeRight('feed')).to.equal(undefined);
    expect(await second.isRightTaken('feed')).to.equal(true);
    await right?.release();
    const taken = await eventually('the other process has the right', () => second.takeRight('feed'));
    await taken.release();
  });

  for (const [mode, settings] of Object.entries({
    'pools transactions': { pool_mode: 'transaction' },
    'pools transactions, in turns': { pool_mode: 'transaction', server_round_robin: 1 },
    'pools transactions, with one connection': { pool_mode: 'transaction', default_pool_size: 1 },
    'pools transactions, and keeps connections': { pool_mode: 'transaction', min_pool_size: 5 },
    'pools transactions, and ignores the time limits': {
      pool_mode: 'transaction',
      ignore_startup_parameters: 'statement_timeout, idle_in_transaction_session_timeout',
    },
    'pools statements': { pool_mode: 'statement' },
  }))
    it(`that ${mode} is refused with a remedy, by the service and by commands`, async () => {
      const databaseUrl = await urlOf(settings);
      for (const opening of [open, besideService]) {
        const error = await errorOf(opening(databaseUrl));
        expect(error).to.include({ name: 'ConfigurationError', code: 'DATABASE_POOLED' });
        expect(error.message).to.include('pool_mode = session').and.include(String(error.remedy));
      }
    });
});
