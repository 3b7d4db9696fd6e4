import type { Kysely, Transaction } from 'kysely';
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
  /** Makes this process the only reader of a feed's chain. Undefined if another process already is. */
  lead(feed: string): Promise<Leadership | undefined>;
  /** Whether another process reads the feed. Only for feeds that this process does not read. */
  isLed(feed: string): Promise<boolean>;
  /**
   * Whether the open files are no longer at their path, so that everything is lost when the process ends:
   * never on PostgreSQL, whose server has the files.
   */
  isRemoved(): boolean;
  close(): Promise<void>;
}

/** The right to read a feed's chain and to write what was read. */
export interface Leadership {
  /** Aborts when the right was lost, for example with its connection. */
  lost: AbortSignal;
  release(): Promise<void>;
}
