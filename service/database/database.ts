import type { Kysely, Transaction } from 'kysely';
import { ServiceError } from '../base/errors';
import type { Schema } from './schema';

/**
 * Runs work in a transaction and resolves with its result after the commit. The work may run again if its
 * transaction was not committed, so it must have no effects outside of the database.
 */
export type Transact = <T>(work: (transaction: Transaction<Schema>) => Promise<T>) => Promise<T>;

/** An open database, with one query layer for two engines. */
export interface Database {
  db: Kysely<Schema>;
  /**
   * Nearly all statements are the same on both engines. Row locks exist only on PostgreSQL, which has several
   * writers.
   */
  engine: 'sqlite' | 'postgres';
  /** For many small transactions at once. */
  transact: Transact;
  /**
   * Takes a right that one process at a time has. A feed's name is the right to read its chain and to write
   * what was read; `mintingRightOf` names the right to mint a journal's documents. Undefined if another
   * process has the right.
   */
  takeRight(right: string): Promise<ExclusiveRight | undefined>;
  /** Whether another process has the right. Only for rights that this process does not have. */
  isRightTaken(right: string): Promise<boolean>;
  /**
   * Whether the open files are no longer at their path, so that everything is lost when the process ends:
   * never on PostgreSQL, whose server has the files.
   */
  isRemoved(): boolean;
  close(): Promise<void>;
}

/** A right that this process has. */
export interface ExclusiveRight {
  /** Aborts when the right was lost, for example with its connection. */
  lost: AbortSignal;
  release(): Promise<void>;
}

/** The error of a write that the database does not allow to anybody. */
export function readOnlyError(cause?: unknown): ServiceError {
  const remedy = 'Let DATABASE_URL lead to the primary, or make the disk of DATA_DIR writable.';
  const message = `Nothing can be stored: the database is read-only. ${remedy}`;
  return new ServiceError('DATABASE_READ_ONLY', message, { cause, remedy });
}
