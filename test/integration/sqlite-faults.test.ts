import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Kysely, sql } from 'kysely';
import Sqlite from 'libsql';
import type { Database } from '../../service/database/database';
import { openSqlite } from '../../service/database/open-sqlite';
import type { Schema } from '../../service/database/schema';
import { sqliteDialect } from '../../service/database/sqlite-driver';
import { codeOf, messageOf, ServiceError } from '../../service/base/errors';
import { track } from '../helpers/resources';
import { temporaryFolder } from '../helpers/temporary-folder';

const HELD_MS = 300;
/** Far more than an event loop needs that is not blocked, even on a busy machine. */
const LONGEST_STANDSTILL_MS = 2_000;
const TICK_MS = 5;
const PATIENCE_MS = 800;
/** More than one transaction takes together. */
const MANY_JOINED = 70;
/** In bytes: more than one page, less than the free space. */
const LONG_NOTE = 50_000;

describe('SQLite while another connection holds a lock on the file', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let database: Database;
  let other: Sqlite.Database;

  beforeEach(async () => {
    folder = temporaryFolder();
    database = await openSqlite(folder.path, { patienceMs: 10_000 });
    await sql`create table notes (n integer primary key)`.execute(database.db);
    other = new Sqlite(join(folder.path, 'state.sqlite'));
  });

  afterEach(async () => {
    other.close();
    await database.close();
    folder.remove();
  });

  const note = (n: number) => (db: Database['db']) => sql`insert into notes (n) values (${n})`.execute(db);
  const noted = async (db = database): Promise<number[]> => {
    const { rows } = await sql<{ n: number }>`select n from notes order by n`.execute(db.db);
    return rows.map(({ n }) => n);
  };

  it('loses no write, and does not block the event loop', async () => {
    other.exec('begin immediate; insert into notes (n) values (1)');
    setTimeout(() => other.exec('commit'), HELD_MS);
    let standstill = 0;
    let last = performance.now();
    const ticking = setInterval(() => {
      standstill = Math.max(standstill, performance.now() - last);
      last = performance.now();
    }, TICK_MS);
    const { db } = database;
    await Promise.all([
      db.transaction().execute(note(2)),
      database.transact(note(3)),
      note(4)(db),
      db.insertInto('journal_chains').values({ scope: 'a', genesis_hash: '0x01' }).returningAll().execute(),
    ]);
    clearInterval(ticking);
    expect(await noted()).to.deep.equal([1, 2, 3, 4]);
    expect(await db.selectFrom('journal_chains').selectAll().execute()).to.have.length(1);
    expect(standstill).to.be.lessThan(LONGEST_STANDSTILL_MS);
  });

  it('can be read while a write waits for the lock', async () => {
    await note(1)(database.db);
    other.exec('begin immediate; insert into notes (n) values (2)');
    const written = database.db.transaction().execute(note(3));
    await sleep(TICK_MS);
    const rows = await database.db
      .selectFrom('feeds')
      .select(sql<number>`(select count(*) from notes)`.as('notes'))
      .executeTakeFirst();
    expect(rows).to.equal(undefined);
    other.exec('commit');
    await written;
    expect(await noted()).to.deep.equal([1, 2, 3]);
  });

  it('is not read in the middle of a transaction', async () => {
    const { db } = database;
    let reading: Promise<{ feed: string }[]> | undefined;
    const failed = await db
      .transaction()
      .execute(async (transaction) => {
        await transaction.insertInto('feeds').values({ feed: 'a', next_block: 1 }).execute();
        reading = db.selectFrom('feeds').select('feed').execute();
        await sleep(TICK_MS);
        throw new Error('nothing of it');
      })
      .catch(messageOf);
    expect(failed).to.equal('nothing of it');
    expect(await reading).to.deep.equal([]);
  });

  it('reports DATABASE_LOCKED when the lock lasts too long, and is writable afterwards', async () => {
    const impatient = await reopened({ patienceMs: PATIENCE_MS });
    other.exec('begin immediate');
    const start = performance.now();
    const joined = Array.from({ length: MANY_JOINED }, (_, n) => impatient.transact(note(n)));
    const separate = Array.from({ length: 5 }, (_, n) => note(n)(impatient.db));
    const failures = await Promise.allSettled([...joined, ...separate]);
    const reasons = failures.map((one) => (one.status === 'rejected' ? (one.reason as unknown) : undefined));
    for (const reason of reasons)
      expect(reason).to.be.instanceOf(ServiceError).and.include({ code: 'DATABASE_LOCKED', retryable: true });
    // All of them wait at the same time, not one after the other.
    expect(performance.now() - start).to.be.lessThan(1.5 * PATIENCE_MS);
    other.exec('commit');
    await impatient.transact(note(5));
    await note(6)(impatient.db);
    expect(await noted(impatient)).to.deep.equal([5, 6]);
  });

  it('reports the first error when it is closed in the middle of a transaction', async () => {
    const { db } = database;
    const failure = await db
      .transaction()
      .execute(async (transaction) => {
        await database.close();
        await note(1)(transaction);
      })
      .catch(messageOf);
    expect(failure).to.match(/not open/);
  });

  it('reports the first error when the rollback fails', async () => {
    const file = new Sqlite(join(folder.path, 'state.sqlite'));
    const exec = file.exec.bind(file);
    file.exec = (statement) => {
      if (statement === 'rollback') throw new Error('disk I/O error');
      return exec(statement);
    };
    for (const fail of [
      (db: Database['db']) => note(1)(db),
      (db: Database['db']) => db.transaction().execute(note(1)),
    ]) {
      const db = new Kysely<Schema>({ dialect: sqliteDialect(file, PATIENCE_MS) });
      await sql`insert or ignore into notes (n) values (1)`.execute(db);
      expect(await fail(db).catch(messageOf)).to.match(/UNIQUE constraint failed/);
      exec('rollback');
    }
    file.close();
  });

  async function reopened(options: { patienceMs: number }): Promise<Database> {
    await database.close();
    return (database = await openSqlite(folder.path, options));
  }
});

describe('SQLite when the disk is full', () => {
  let folder: ReturnType<typeof temporaryFolder>;

  beforeEach(() => (folder = temporaryFolder()));
  afterEach(() => folder.remove());

  it('reports DATABASE_FULL, not a failed rollback, and stores again when there is room', async () => {
    const database = await openSqlite(folder.path);
    const { db } = database;
    try {
      const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
      await limitPages(db, rows[0]?.page_count ?? 0);
      await expectFull(database);
      await limitPages(db, 1_000_000);
      await expectRoom(database);
    } finally {
      await database.close();
    }
  });

  it('reports DATABASE_FULL on a real file system too', async function () {
    const disk = smallDisk(join(folder.path, 'disk'));
    if (disk === undefined) return this.skip();
    const database = await openSqlite(disk.path);
    try {
      await expectFull(database);
      disk.grow();
      await expectRoom(database);
    } finally {
      await database.close();
      disk.remove();
    }
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

/** A file system of 2 MB; undefined where mounting is not permitted. */
function smallDisk(path: string): { path: string; grow(): void; remove(): void } | undefined {
  const mount = (options: string): void =>
    void execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'ignore' });
  mkdirSync(path);
  try {
    mount('size=2m');
  } catch {
    return undefined;
  }
  const untrack = track(`file system at ${path}`);
  return {
    path,
    grow: () => mount('remount,size=16m'),
    remove() {
      // libsql closes a file when its last statement is collected.
      execFileSync('umount', ['--lazy', path]);
      untrack();
    },
  };
}
