import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool } from 'pg';

/**
 * A pool that never lends a connection again on which a statement failed to be answered. pg gives up waiting
 * (`query_timeout`) without telling the server: the statement, and the transaction around it, may still be
 * under way there, and whoever got the connection next would work inside of that transaction.
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
        // Nothing more is sent, a rollback neither: the connection's end rolls back.
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

/** The server itself said no: it has an SQLSTATE, and the connection goes on. */
function isAnswered(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && 'code' in error;
}
