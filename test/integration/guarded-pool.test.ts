import { expect } from 'chai';
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import { Pool } from 'pg';
import { guarded } from '../../service/database/open-postgres';
import { postgresDatabase, type PostgresDatabase } from '../helpers/database/postgres';

interface Schema {
  written: { word: string };
}

const ANSWER_WITHIN_MS = 200;

describe('a pool whose only connection gave no answer', () => {
  let database: PostgresDatabase | undefined;
  let pool: Pool;
  let db: Kysely<Schema>;

  before(async function () {
    database = await postgresDatabase();
    if (database === undefined) return this.skip();
    pool = new Pool({ connectionString: database.url, max: 1, query_timeout: ANSWER_WITHIN_MS });
    // Removing the database may end connections that the pool has not yet closed.
    pool.on('error', () => undefined);
    pool.on('connect', (client) => client.on('error', () => undefined));
    db = new Kysely({ dialect: new PostgresDialect({ pool: guarded(pool) }) });
    await sql`create table written (word text)`.execute(db);
  });

  // `truncate` would wait for the connection that was given up: the server notices late that it is closed.
  beforeEach(() => db.deleteFrom('written').execute());

  after(async () => {
    await db?.destroy();
  });

  const write = (transaction: Transaction<Schema>, word: string): Promise<unknown> =>
    transaction.insertInto('written').values({ word }).execute();
  const words = async (): Promise<string[]> =>
    (await db.selectFrom('written').select('word').orderBy('word').execute()).map(({ word }) => word);
  const inTransaction = (act: (transaction: Transaction<Schema>) => Promise<unknown>): Promise<unknown> =>
    db
      .transaction()
      .execute(act)
      .catch((error: unknown) => error);
  const takeMs = (transaction: Transaction<Schema>, ms: number): Promise<unknown> =>
    sql`select pg_sleep(${ms / 1_000})`.execute(transaction);

  it('does not commit earlier writes with those of the next transaction', async () => {
    const failure = await inTransaction(async (transaction) => {
      await write(transaction, 'of the one that got no answer');
      // A rollback would not be answered in time either, but the statement after it would.
      await takeMs(transaction, 2.5 * ANSWER_WITHIN_MS);
    });
    expect(failure).to.be.instanceOf(Error).and.include({ message: 'Query read timeout' });
    await inTransaction((transaction) => write(transaction, 'of the next one'));
    expect(await words()).to.deep.equal(['of the next one']);
  });

  it('sends nothing more in a transaction that continues after the timeout', async () => {
    const failure = await inTransaction(async (transaction) => {
      await takeMs(transaction, 1.5 * ANSWER_WITHIN_MS).catch(() => undefined);
      await write(transaction, 'after no answer');
    });
    expect(failure).to.be.instanceOf(Error).and.include({ message: 'Query read timeout' });
    expect(await words()).to.deep.equal([]);
  });

  it('keeps a connection on which the server reported an error, and rolls back', async () => {
    let opened = 0;
    pool.on('connect', () => opened++);
    const failure = await inTransaction(async (transaction) => {
      await write(transaction, 'before a mistake');
      await sql`select 1 / 0`.execute(transaction);
    });
    expect(failure).to.be.instanceOf(Error).and.include({ message: 'division by zero' });
    await inTransaction((transaction) => write(transaction, 'of the next one'));
    expect(await words()).to.deep.equal(['of the next one']);
    expect(opened).to.equal(0);
  });
});
