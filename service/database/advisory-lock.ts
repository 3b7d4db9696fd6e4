import { setTimeout as sleep } from 'node:timers/promises';
import { sql, type Kysely } from 'kysely';
import { Client, type ClientConfig } from 'pg';
import { ServiceError } from '../base/errors';
import type { ExclusiveRight } from './database';
import type { Schema } from './schema';

const END_WITHIN_MS = 5_000;
/** Interval and timeout of the checks of the connection that holds a lock. */
const BEAT_EVERY_MS = 5_000;
const BEAT_WITHIN_MS = 5_000;

/**
 * Keep-alive settings in seconds. With them the server soon notices that the client is gone, and frees the
 * lock.
 */
const KEEP_ALIVE = `
  set tcp_keepalives_idle = 5;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3`;

/**
 * Takes the advisory lock of a right on a separate connection. PostgreSQL releases the lock when the
 * connection ends for any reason, so that another process can take over.
 */
export async function takeRight(
  connection: ClientConfig,
  right: string,
): Promise<ExclusiveRight | undefined> {
  const client = new Client({ ...connection, query_timeout: BEAT_WITHIN_MS });
  const ended = new AbortController();
  const lose = (): void => ended.abort(lostError(right));
  client.on('error', lose);
  client.on('end', lose);
  try {
    await client.connect();
    await client.query(KEEP_ALIVE);
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
      [right],
    );
    if (rows[0]?.taken) return { lost: ended.signal, release: beat(client, lose) };
  } catch (cause) {
    await endWithin(client);
    throw cause;
  }
  await endWithin(client);
  return undefined;
}

/** Whether any process holds the lock of a right. pg_locks lists the lock's 64 bits in two halves. */
export async function isRightTaken(db: Kysely<Schema>, right: string): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select exists (
      select 1 from pg_locks
      where locktype = 'advisory' and objsubid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())
        and ((classid::bigint << 32) | objid::bigint) = hashtextextended(${right}, 0)
    ) as taken`.execute(db);
  return rows[0]?.taken ?? false;
}

/** Checks the connection until it is released; returns a function that releases it. */
function beat(client: Client, lose: () => void): () => Promise<void> {
  const timer = setInterval(() => void client.query('select 1').catch(lose), BEAT_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await endWithin(client);
  };
}

function lostError(right: string): ServiceError {
  const message = `The database connection that holds the right ${right} was lost.`;
  return new ServiceError('LEADERSHIP_LOST', message, { retryable: true });
}

/** Closes the connection. If that hangs, it is left to the operating system. */
async function endWithin(client: Client): Promise<void> {
  const timeout = new AbortController();
  const patience = sleep(END_WITHIN_MS, undefined, { signal: timeout.signal }).catch(() => undefined);
  await Promise.race([client.end().catch(() => undefined), patience]);
  timeout.abort();
}
