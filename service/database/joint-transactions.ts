import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import type { Transact } from './database';
import type { Schema } from './schema';

/** Maximum number per transaction: SQLite blocks the event loop. */
const MOST_JOINED = 32;

/** Work in a shared transaction. It returns a function that reports its result after the commit. */
interface Joined {
  work: (transaction: Transaction<Schema>) => Promise<() => void>;
  fail: (cause: unknown) => void;
}

/**
 * Creates a `transact` that runs concurrent work in one transaction, because each commit waits for the disk.
 * If one piece of work fails, the transaction is rolled back and each piece runs again on its own. If the
 * transaction cannot begin, all of it fails, and so does the work that waits for the next one: otherwise each
 * transaction would wait for a lock anew.
 */
export function createJointTransactions(db: Kysely<Schema>): Transact {
  const waiting: Joined[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    // Work that is added in the same turn of the event loop joins.
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
