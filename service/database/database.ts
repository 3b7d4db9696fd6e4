import type { Kysely } from 'kysely';
import type { Schema } from './schema';

/** An open database: one query layer over two engines. */
export interface Database {
  db: Kysely<Schema>;
  /** Nearly every statement is the same on both; row locks exist on PostgreSQL only, where there are other writers. */
  engine: 'sqlite' | 'postgres';
  /** Makes this process the only reader of a feed's chain, or gives undefined when another process is. */
  lead(feed: string): Promise<Leadership | undefined>;
  close(): Promise<void>;
}

/** The right to read a feed's chain and to write what was read. */
export interface Leadership {
  /** Aborts when the right was lost, as with the connection that held it. */
  lost: AbortSignal;
  release(): Promise<void>;
}
