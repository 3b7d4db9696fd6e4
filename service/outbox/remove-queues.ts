import type { Database } from '../database/database';

/** Queues per transaction. Transactions are short because a running service waits for each. */
const REMOVED_AT_ONCE = 500;

/** Deletes the queues of channels that do not exist any more. */
export async function removeQueues(
  { db, engine }: Database,
  channels: readonly number[],
  signal?: AbortSignal,
): Promise<void> {
  for (const channel of channels) {
    await db.deleteFrom('dead_letters').where('channel', '=', channel).execute();
    let removed: number;
    do {
      removed = await db.transaction().execute(async (transaction) => {
        // Queues are locked in the order of their keys, as in settle-queues.ts.
        const queues = await transaction
          .selectFrom('queues')
          .select('token')
          .where('channel', '=', channel)
          .orderBy('token')
          .limit(REMOVED_AT_ONCE)
          .$if(engine === 'postgres', (query) => query.forUpdate())
          .execute();
        if (queues.length === 0) return 0;
        const tokens = queues.map(({ token }) => token);
        for (const table of ['deliveries', 'queues'] as const)
          await transaction
            .deleteFrom(table)
            .where('channel', '=', channel)
            .where('token', 'in', tokens)
            .execute();
        return queues.length;
      });
    } while (removed > 0 && !signal?.aborted);
  }
}

/** Deletes the queues that a process left when it died while it deleted a subscription. */
export async function removeLeftoverQueues(database: Database, signal?: AbortSignal): Promise<void> {
  const { db } = database;
  const withQueues: number[] = [];
  for (let last = 0; ;) {
    // The index gives each channel's first row, however many queues it has.
    const { next } = await db
      .selectFrom('queues')
      .select((eb) => eb.fn.min('channel').as('next'))
      .where('channel', '>', last)
      .executeTakeFirstOrThrow();
    if (next === null) break;
    withQueues.push((last = Number(next)));
  }
  // Read after the queues: a channel that is missing by now was deleted, and its id is not used again.
  const channels = new Set((await db.selectFrom('channels').select('id').execute()).map(({ id }) => id));
  await removeQueues(
    database,
    withQueues.filter((channel) => !channels.has(channel)),
    signal,
  );
}
