import type { Kysely, Transaction } from 'kysely';
import type { Schema } from './schema';

/**
 * Runs work in a transaction, and resolves with its result when that is committed. The work may be run again,
 * after nothing of it was committed, and has no effect but in the database.
 */
export type Transact = <T>(work: (transaction: Transaction<Schema>) => Promise<T>) => Promise<T>;

/** An open database: one query layer over two engines. */
export interface Database {
  db: Kysely<Schema>;
  /**
   * Nearly every statement is the same on both; row locks exist on PostgreSQL only, where there are other
   * writers.
   */
  engine: 'sqlite' | 'postgres';
  /** For small work of which there is much at once. */
  transact: Transact;
  /** Makes this process the only reader of a feed's chain, or gives undefined when another process is. */
  lead(feed: string): Promise<Leadership | undefined>;
  /** Whether another process is, of a feed that this one is not the reader of. */
  isLed(feed: string): Promise<boolean>;
  close(): Promise<void>;
}

/** The right to read a feed's chain and to write what was read. */
export interface Leadership {
  /** Aborts when the right was lost, as with the connection that held it. */
  lost: AbortSignal;
  release(): Promise<void>;
}
