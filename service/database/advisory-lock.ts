import { Client, type ClientConfig } from 'pg';
import type { Leadership } from './database';

/**
 * Takes the advisory lock of a feed on a connection of its own. PostgreSQL gives the lock back when that connection ends, however
 * it ends, so that another process can take over.
 */
export async function takeLeadership(
  connection: ClientConfig,
  feed: string,
): Promise<Leadership | undefined> {
  const client = new Client(connection);
  const ended = new AbortController();
  client.on('error', () => ended.abort());
  client.on('end', () => ended.abort());
  await client.connect();
  try {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
      [feed],
    );
    if (rows[0]?.taken) return { lost: ended.signal, release: () => client.end() };
  } catch (cause) {
    await client.end().catch(() => undefined);
    throw cause;
  }
  await client.end();
  return undefined;
}
