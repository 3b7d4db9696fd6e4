import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Kysely, sql } from 'kysely';
import Sqlite from 'libsql';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { openSqlite } from '../../service/database/open-sqlite';
import type { Schema } from '../../service/database/schema';
import { sqliteDialect } from '../../service/database/sqlite-driver';
import { codeOf, messageOf, ServiceError } from '../../service/base/errors';
import { smallDisk } from '../helpers/database/small-disk';
import { owned } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';
import { VirtualTime } from '../helpers/virtual-time';

const HELD_MS = 300;
const PATIENCE_MS = 800;
/** Transactions that begin in one turn of the event loop. */
const MANY = 100;
/** More than one transaction takes together. */
const MANY_JOINED = 70;
/** In bytes: more than one page, less than the free space. */
const LONG_NOTE = 50_000;

/** A new database with an empty table for each test of a suite. */
function databaseWithNotes() {
  const place = {} as { database: Database; path: string };
  beforeEach(async () => {
    place.path = temporaryFolder().path;
    place.database = await open(place.path, 10_000);
    await sql`create table notes (n integer primary key)`.execute(place.database.db);
  });
  return place;
}

/** Its pauses before it asks for a lock again are virtual. */
const time = new VirtualTime();

const open = async (path: string, patienceMs?: number): Promise<Database> =>
  owned(
    `database in ${path}`,
    await openSqlite(path, { time, ...(patienceMs !== undefined && { patienceMs }) }),
    'close',
  );

/** Inserts a number; fails the second time. */
const note =
  (n: number) =>
  async (db: Database['db']): Promise<number> => {
    await sql`insert into notes (n) values (${n})`.execute(db);
    return n;
  };

async function noted({ db }: Pick<Database, 'db'>): Promise<number[]> {
  const { rows } = await sql<{ n: number }>`select n from notes order by n`.execute(db);
  return rows.map(({ n }) => n);
}

describe('SQLite while another connection holds a lock on the file', () => {
  const place = databaseWithNotes();
  let other: Sqlite.Database;

  beforeEach(() => (other = new Sqlite(join(place.path, 'state.sqlite'))));
  afterEach(() => other.close());

  // The other connection is of this thread: writes that blocked it would never get the lock.
  it('loses no write, and does not block the event loop', async () => {
    other.exec('begin immediate; insert into notes (n) values (1)');
    const { db } = place.database;
    const written = Promise.all([
      db.transaction().execute(note(2)),
      place.database.transact(note(3)),
      note(4)(db),
      db.insertInto('journal_chains').values({ scope: 'a', genesis_hash: '0x01' }).returningAll().execute(),
    ]);
    await time.pass(HELD_MS);
    other.exec('commit');
    await time.settled(written);
    expect(await noted(place.database)).to.deep.equal([1, 2, 3, 4]);
    expect(await db.selectFrom('journal_chains').selectAll().execute()).to.have.length(1);
  });

  it('can be read while a write waits for the lock', async () => {
    await note(1)(place.database.db);
    other.exec('begin immediate; insert into notes (n) values (2)');
    const written = place.database.db.transaction().execute(note(3));
    await time.pass(HELD_MS);
    const rows = await place.database.db
      .selectFrom('feeds')
      .select(sql<number>`(select count(*) from notes)`.as('notes'))
      .executeTakeFirst();
    expect(rows).to.equal(undefined);
    other.exec('commit');
    await time.settled(written);
    expect(await noted(place.database)).to.deep.equal([1, 2, 3]);
  });

  it('is not read in the middle of a transaction', async () => {
    const { db } = place.database;
    let reading: Promise<{ feed: string }[]> | undefined;
    const failed = await db
      .transaction()
      .execute(async (transaction) => {
        await transaction.insertInto('feeds').values({ feed: 'a', next_block: 1 }).execute();
        reading = db.selectFrom('feeds').select('feed').execute();
        for (let turns = 0; turns < 10; turns++) await turn();
        throw new Error('nothing of it');
      })
      .catch(messageOf);
    expect(failed).to.equal('nothing of it');
    expect(await reading).to.deep.equal([]);
  });

  it('reports DATABASE_LOCKED when the lock lasts too long, and is writable afterwards', async () => {
    await place.database.close();
    const impatient = await open(place.path, PATIENCE_MS);
    other.exec('begin immediate');
    const start = time.elapsed();
    const joined = Array.from({ length: MANY_JOINED }, (_, n) => impatient.transact(note(n)));
    const separate = Array.from({ length: 5 }, (_, n) => note(n)(impatient.db));
    const failures = await time.settled(Promise.allSettled([...joined, ...separate]));
    const reasons = failures.map((one) => (one.status === 'rejected' ? (one.reason as unknown) : undefined));
    for (const reason of reasons)
      expect(reason).to.be.instanceOf(ServiceError).and.include({ code: 'DATABASE_LOCKED', retryable: true });
    // All of them wait at the same time, not one after the other.
    expect(time.elapsed() - start).to.be.lessThan(1.5 * PATIENCE_MS);
    other.exec('commit');
    await impatient.transact(note(5));
    await note(6)(impatient.db);
    expect(await noted(impatient)).to.deep.equal([5, 6]);
  });

  it('reports the first error when it is closed in the middle of a transaction', async () => {
    const { db } = place.database;
    const failure = await db
      .transaction()
      .execute(async (transaction) => {
        await place.database.close();
        await note(1)(transaction);
      })
      .catch(messageOf);
    expect(failure).to.match(/not open/);
  });

  it('reports the first error when the rollback fails', async () => {
    const file = new Sqlite(join(place.path, 'state.sqlite'));
    const exec = file.exec.bind(file);
    file.exec = (statement) => {
      if (statement === 'rollback') throw new Error('disk I/O error');
      return exec(statement);
    };
    for (const fail of [note(1), (db: Database['db']) => db.transaction().execute(note(1))]) {
      const db = new Kysely<Schema>({ dialect: sqliteDialect(systemTime, file, PATIENCE_MS) });
      await sql`insert or ignore into notes (n) values (1)`.execute(db);
      expect(await fail(db).catch(messageOf)).to.match(/UNIQUE constraint failed/);
      exec('rollback');
    }
    file.close();
  });
});

describe('concurrent transactions on SQLite', () => {
  const place = databaseWithNotes();

  const numbers = Array.from({ length: MANY }, (_, n) => n);

  it('share few commits, and each gives its own result', async () => {
    let begun = 0;
    const begin = place.database.db.transaction.bind(place.database.db);
    place.database.db.transaction = () => {
      begun++;
      return begin();
    };
    const results = await Promise.all(numbers.map((n) => place.database.transact(note(n))));
    expect(results).to.deep.equal(numbers);
    expect(await noted(place.database)).to.deep.equal(numbers);
    expect(begun).to.be.within(1, MANY / 10);
  });

  it('fail alone: those that share a commit with a failing one are committed', async () => {
    const works = [note(1), note(2), note(1), note(3)];
    const outcomes = await Promise.allSettled(works.map(place.database.transact));
    const failed = outcomes.map(({ status }) => status === 'rejected');
    expect(failed).to.deep.equal([false, false, true, false]);
    expect(await noted(place.database)).to.deep.equal([1, 2, 3]);
  });

  it('see the writes of those before them', async () => {
    const { transact } = place.database;
    const read = (db: Database['db']): Promise<number[]> => noted({ db });
    const [, seen] = await Promise.all([transact(note(7)), transact(read)]);
    expect(seen).to.deep.equal([7]);
  });

  it('continue after a failure, and after a pause', async () => {
    await place.database.transact(note(1));
    await place.database.transact(note(1)).catch(() => undefined);
    for (let turns = 0; turns < 10; turns++) await turn();
    await place.database.transact(note(2));
    expect(await noted(place.database)).to.deep.equal([1, 2]);
  });

  it('fail when the database is closed', async () => {
    await place.database.db.destroy();
    expect(await place.database.transact(note(1)).catch(messageOf)).to.be.a('string');
  });
});

describe('SQLite when the disk is full', () => {
  it('reports DATABASE_FULL, not a failed rollback, and stores again when there is room', async () => {
    const database = await open(temporaryFolder().path);
    const { db } = database;
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
    await limitPages(db, rows[0]?.page_count ?? 0);
    await expectFull(database);
    await limitPages(db, 1_000_000);
    await expectRoom(database);
  });

  it('reports DATABASE_FULL on a real file system too', async function () {
    const disk = smallDisk(join(temporaryFolder().path, 'disk'));
    if (disk === undefined) return this.skip();
    const database = await open(disk.path);
    await expectFull(database);
    disk.grow();
    await expectRoom(database);
  });

  async function limitPages(db: Database['db'], pages: number): Promise<void> {
    await sql`pragma max_page_count = ${sql.raw(String(pages))}`.execute(db);
  }

  /** Writes until nothing fits, in each way of writing. */
  async function expectFull({ db, transact }: Database): Promise<void> {
    const ways = [
      () => db.transaction().execute((transaction) => write(transaction)),
      () => transact((transaction) => write(transaction)),
      () => write(db),
    ];
    for (const way of ways) {
      let failure: unknown;
      for (let times = 0; failure === undefined && times < 100; times++)
        failure = await way().then(
          () => undefined,
          (error: unknown) => error,
        );
      expect(failure).to.be.instanceOf(ServiceError).and.include({ code: 'DATABASE_FULL', retryable: true });
      expect(codeOf((failure as Error).cause)).to.equal('SQLITE_FULL');
    }
  }

  async function expectRoom({ db, transact }: Database): Promise<void> {
    await transact((transaction) => write(transaction));
    await db.transaction().execute((transaction) => write(transaction));
    await write(db);
  }

  let scopes = 0;
  async function write(db: Database['db']): Promise<void> {
    const scope = String(++scopes);
    await db
      .insertInto('journal_chains')
      .values({ scope, genesis_hash: 'x'.repeat(LONG_NOTE) })
      .returning('scope')
      .execute();
  }
});
