import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import type { Transact } from './database';
import type { Schema } from './schema';

/** Of one transaction: SQLite works on the event loop. */
const MOST_JOINED = 32;

/** Some work in a transaction of others; gives what is told when that is committed. */
interface Joined {
  work: (transaction: Transaction<Schema>) => Promise<() => void>;
  fail: (cause: unknown) => void;
}

/**
 * Makes a `transact` that runs what is asked for at about the same time in one transaction: a commit waits
 * for the disk, and all of them wait once. When one of them fails, nothing of it is committed, and each runs
 * again alone; when the transaction cannot even begin, all fail, and all who wait for the next one, or each
 * transaction would wait for a lock anew.
 */
export function createJointTransactions(db: Kysely<Schema>): Transact {
  const waiting: Joined[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    // What else this turn of the event loop brings comes along.
    for (await nextTurn(); waiting.length > 0; await nextTurn())
      await commitTogether(db, waiting.splice(0, MOST_JOINED), (cause) => {
        for (const one of waiting.splice(0)) one.fail(cause);
      });
    isRunning = false;
  }

  return (work) =>
    new Promise((resolve, reject) => {
      const joined = async (transaction: Transaction<Schema>): Promise<() => void> => {
        const result = await work(transaction);
        return () => resolve(result);
      };
      waiting.push({ work: joined, fail: reject });
      if (!isRunning) void run();
    });
}

async function commitTogether(
  db: Kysely<Schema>,
  joined: readonly Joined[],
  onNotBegun: (cause: unknown) => void,
): Promise<void> {
  let hasBegun = false;
  try {
    const tell = await db.transaction().execute(async (transaction) => {
      hasBegun = true;
      const results: (() => void)[] = [];
      for (const { work } of joined) results.push(await work(transaction));
      return results;
    });
    for (const one of tell) one();
  } catch (cause) {
    if (hasBegun && joined.length > 1) for (const one of joined) await commitTogether(db, [one], onNotBegun);
    else for (const one of joined) one.fail(cause);
    if (!hasBegun) onNotBegun(cause);
  }
}
