import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import type { Leadership } from './database';

const END_WITHIN_MS = 5_000;

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
    if (rows[0]?.taken) return { lost: ended.signal, release: () => endWithin(client, END_WITHIN_MS) };
  } catch (cause) {
    await client.end().catch(() => undefined);
    throw cause;
  }
  await client.end();
  return undefined;
}

/** A connection that nobody answers on any more is left to the operating system. */
async function endWithin(client: Client, ms: number): Promise<void> {
  const timeout = new AbortController();
  await Promise.race([client.end(), sleep(ms, undefined, { signal: timeout.signal })]).finally(() =>
    timeout.abort(),
  );
}
