import type { KyselyPlugin } from 'kysely';
import type { Database } from '../../../service/database/database';
import { createJointTransactions } from '../../../service/database/sqlite-driver';

/** A process's view of a database, until the process is killed. */
export interface MortalDatabase {
  database: Database;
  /** Whether the process was killed: since then all its statements fail, also those of open transactions. */
  isDead(): boolean;
}

/** A process that is killed before or after one of its next statements, counted from 1. */
export function mortalDatabase(file: Database, statement: number): MortalDatabase {
  let left = statement * 2;
  const step = (): void => {
    if (--left <= 0) throw new Error('the process was killed');
  };
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      step();
      return node;
    },
    async transformResult({ result }) {
      step();
      return result;
    },
  };
  const db = file.db.withPlugin(plugin);
  const transact: Database['transact'] =
    file.engine === 'sqlite' ? createJointTransactions(db) : (work) => db.transaction().execute(work);
  return { database: { ...file, db, transact }, isDead: () => left <= 0 };
}
