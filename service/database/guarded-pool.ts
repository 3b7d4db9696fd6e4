import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool } from 'pg';

/**
 * Wraps a pool so that a connection is never reused after a statement on it got no answer. pg gives up
 * waiting (`query_timeout`) without cancelling the statement: it and its transaction may still run on the
 * server, and the next user of the connection would work inside that transaction.
 */
export function guarded(pool: Pool): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      let broken: Error | undefined;
      const query = async <R>(
        sql: string,
        parameters: readonly unknown[],
      ): Promise<PostgresQueryResult<R>> => {
        // Sends nothing more, not even a rollback: closing the connection rolls back.
        if (broken) throw broken;
        try {
          return (await client.query(sql, [...parameters])) as unknown as PostgresQueryResult<R>;
        } catch (error) {
          if (!isAnswered(error)) broken = error as Error;
          throw error;
        }
      };
      const release = (): void => client.release(broken);
      return { query, release } as PostgresPoolClient;
    },
    end: () => pool.end(),
  };
}

/** The server itself refused the statement: the error has an SQLSTATE, and the connection is usable. */
function isAnswered(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && 'code' in error;
}
