import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  type Transaction,
} from 'kysely';
import type Sqlite from 'libsql';
import { type Time, newDeferred, pause } from '../base/time';
import { codeOf, ServiceError } from '../base/errors';
import { readOnlyError, type Transact } from './database';
import type { Schema } from './schema';

/** Pauses in milliseconds between attempts to lock the file while another process holds the lock. */
const PAUSES_MS = [1, 2, 5, 10, 25];
const LONGEST_PAUSE_MS = 50;
const MOST_STATEMENTS = 300;
/** Longer statements, such as insertions of many rows, are seldom repeated with the same number of rows. */
const MOST_PARAMETERS = 100;

/**
 * Kysely on one libsql connection. Kysely's own driver lets SQLite wait for another process's lock, which
 * blocks the event loop. This driver tries again after pauses, for up to `patienceMs`; `file` itself must not
 * wait.
 *
 * Statements are kept, because to prepare one takes several times as long as to run it.
 *
 * Every write takes SQLite's lock with `begin immediate` before its first statement, so that only this
 * statement is repeated, and nothing has been changed before it. Any other statement that finds the file
 * locked stays open in libsql until it is garbage-collected, and no transaction can be committed before that.
 */
export function sqliteDialect(time: Time, file: Sqlite.Database, patienceMs: number): Dialect {
  return {
    createDriver: () => new SqliteDriver(time, file, patienceMs),
    createAdapter: () => new TransactionalAdapter(),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

/** Migrates in one transaction, which SQLite can do. A migration that fails, or is killed, changes nothing.
 * */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class SqliteDriver implements Driver {
  /** Resolves when all writes that wait so far are done. */
  #lastWriter: Promise<void> = Promise.resolve();
  /** Resolves when the open transaction has ended; undefined while there is none. */
  #open: Promise<void> | undefined;
  #endTransaction: () => void = () => undefined;
  /** Prepared statements by their SQL, the one used last at the end. */
  readonly #statements = new Map<string, Sqlite.Statement>();

  constructor(
    private readonly time: Time,
    private readonly file: Sqlite.Database,
    private readonly patienceMs: number,
  ) {}

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SqliteConnection> {
    return new SqliteConnection(this);
  }

  async releaseConnection(): Promise<void> {}

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    const leave = await this.#lockForWriting();
    const { promise, resolve: end } = newDeferred<void>();
    this.#open = promise;
    this.#endTransaction = () => {
      this.#open = undefined;
      (connection as SqliteConnection).isInTransaction = false;
      // Waiting reads go first: otherwise a series of writes could delay them without end.
      end();
      leave();
    };
    (connection as SqliteConnection).isInTransaction = true;
  }

  async commitTransaction(): Promise<void> {
    this.#commit();
    this.#endTransaction();
  }

  async rollbackTransaction(): Promise<void> {
    this.#rollback();
    this.#endTransaction();
  }

  async destroy(): Promise<void> {
    this.#statements.clear();
    this.file.close();
  }

  /** Runs a statement in the open transaction. */
  run<R>(query: CompiledQuery): QueryResult<R> {
    return explained(() => this.#resultOf<R>(this.#statementOf(query), query));
  }

  /** Waits for the open transaction, whose changes must not be visible yet, but not for those after it. */
  async read<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    let statement: Sqlite.Statement | undefined;
    return this.#patiently(async () => {
      while (this.#open !== undefined) await this.#open;
      // Reuses the statement: one that found the file locked ends only when it is run to its end.
      statement ??= this.#statementOf(query);
      return this.#resultOf<R>(statement, query);
    });
  }

  #statementOf({ sql, parameters }: CompiledQuery): Sqlite.Statement {
    if (parameters.length > MOST_PARAMETERS) return this.file.prepare(sql);
    const statement = this.#statements.get(sql) ?? this.file.prepare(sql);
    this.#statements.delete(sql);
    this.#statements.set(sql, statement);
    const [oldest = ''] = this.#statements.keys();
    if (this.#statements.size > MOST_STATEMENTS) this.#statements.delete(oldest);
    return statement;
  }

  /** A statement that fails is not kept: it may stay open until it is garbage-collected. */
  #resultOf<R>(statement: Sqlite.Statement, { sql, parameters }: CompiledQuery): QueryResult<R> {
    try {
      if (statement.reader) return { rows: statement.all(parameters) as R[] };
      const { changes, lastInsertRowid } = statement.run(parameters);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      this.#statements.delete(sql);
      throw error;
    }
  }

  /** Runs a statement in its own transaction. */
  async write<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const leave = await this.#lockForWriting();
    try {
      const result = this.run<R>(query);
      this.#commit();
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    } finally {
      leave();
    }
  }

  /**
   * Takes SQLite's lock, one caller at a time, and returns a function that lets the next caller try. The
   * timeout of each caller starts with its call, so that waiting callers fail together and not one after the
   * other.
   */
  async #lockForWriting(): Promise<() => void> {
    const start = this.time.elapsed();
    const before = this.#lastWriter;
    const { promise, resolve: leave } = newDeferred<void>();
    this.#lastWriter = promise;
    await before;
    try {
      await this.#patiently(() => explained(() => this.file.exec('begin immediate')), start);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }

  #commit(): void {
    explained(() => this.file.exec('commit'));
  }

  /**
   * SQLite rolls back by itself after some errors, such as a full disk; then nothing is left to do. libsql
   * ends the process if a closed file is asked whether it is in a transaction. A failed rollback is not
   * reported: the error before it is being thrown, and the next transaction cannot begin.
   */
  #rollback(): void {
    try {
      if (this.file.open && this.file.inTransaction) this.file.exec('rollback');
    } catch {
      // The first error counts.
    }
  }

  async #patiently<T>(work: () => T | Promise<T>, start = this.time.elapsed()): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (!isLocked(error)) throw error;
        if (this.time.elapsed() - start >= this.patienceMs) throw lockedError(this.patienceMs, error);
      }
      await pause(this.time, PAUSES_MS[tries] ?? LONGEST_PAUSE_MS);
    }
  }
}

class SqliteConnection implements DatabaseConnection {
  isInTransaction = false;

  constructor(private readonly driver: SqliteDriver) {}

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.isInTransaction) return this.driver.run(query);
    return query.query.kind === 'SelectQueryNode' ? this.driver.read(query) : this.driver.write(query);
  }

  /** Returns all rows at once: between two batches other statements would write. */
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }
}

function isLocked(error: unknown): boolean {
  return codeOf(error)?.startsWith('SQLITE_BUSY') === true;
}

function lockedError(patienceMs: number, cause: unknown): ServiceError {
  const remedy = 'Stop other programs that write to state.sqlite, or keep a transaction open in it.';
  const message = `Another program has kept the database locked for ${patienceMs / 1000} s. ${remedy}`;
  return new ServiceError('DATABASE_LOCKED', message, { cause, remedy });
}

/** Rewrites an error that an operator has to fix. */
function explained<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (codeOf(cause) === 'SQLITE_READONLY') throw readOnlyError(cause);
    if (codeOf(cause) !== 'SQLITE_FULL') throw cause;
    const remedy = 'Free space on the disk of DATA_DIR.';
    const message = `Nothing can be stored: the disk of the database is full. ${remedy}`;
    throw new ServiceError('DATABASE_FULL', message, { cause, remedy });
  }
}

/** Maximum number per transaction: SQLite blocks the event loop. */
const MOST_JOINED = 32;

/** Work in a shared transaction. `resolve` is called with its result after the commit. */
interface Joined {
  work: (transaction: Transaction<Schema>) => Promise<unknown>;
  resolve: (result: unknown) => void;
  reject: (cause: unknown) => void;
}

/**
 * Creates a `transact` that runs concurrent work in one transaction, because each commit waits for the disk.
 * If one piece of work fails, the transaction is rolled back and each piece runs again on its own. If the
 * transaction cannot begin, all of it fails, and so does the work that waits for the next one: otherwise each
 * transaction would wait for a lock anew.
 */
export function createJointTransactions(db: Kysely<Schema>): Transact {
  const waiting: Joined[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    // Work that is added in the same turn of the event loop joins.
    for (await nextTurn(); waiting.length > 0; await nextTurn())
      await commitTogether(db, waiting.splice(0, MOST_JOINED), (cause) => {
        for (const one of waiting.splice(0)) one.reject(cause);
      });
    isRunning = false;
  }

  return <T>(work: Joined['work']) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ work, resolve: resolve as Joined['resolve'], reject });
      if (!isRunning) void run();
    });
}

async function commitTogether(
  db: Kysely<Schema>,
  joined: readonly Joined[],
  onNotBegun: (cause: unknown) => void,
): Promise<void> {
  let hasBegun = false;
  try {
    const results: unknown[] = [];
    await db.transaction().execute(async (transaction) => {
      hasBegun = true;
      for (const { work } of joined) results.push(await work(transaction));
    });
    for (const [index, { resolve }] of joined.entries()) resolve(results[index]);
  } catch (cause) {
    if (hasBegun && joined.length > 1) for (const one of joined) await commitTogether(db, [one], onNotBegun);
    else for (const one of joined) one.reject(cause);
    if (!hasBegun) onNotBegun(cause);
  }
}
