import { expect } from 'chai';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../service/database/database';
import type { Schema } from '../../service/database/schema';
import { newState, openState, type State } from '../helpers/database/engines';

/** Transactions that begin in one turn of the event loop. */
const MANY = 100;

describe('concurrent transactions on SQLite', () => {
  let state: State | undefined;
  let database: Database;

  beforeEach(async () => {
    state = await newState('SQLite');
    if (state === undefined) throw new Error('SQLite is always there');
    database = await openState(state);
    await sql`create table notes (n integer primary key)`.execute(database.db);
  });

  afterEach(async () => {
    await database.close();
    await state?.remove();
  });

  /** Inserts a number; fails the second time. */
  const note =
    (n: number) =>
    async (transaction: Transaction<Schema>): Promise<number> => {
      await sql`insert into notes (n) values (${n})`.execute(transaction);
      return n;
    };
  const noted = async (): Promise<number[]> => {
    const { rows } = await sql<{ n: number }>`select n from notes order by n`.execute(database.db);
    return rows.map(({ n }) => n);
  };
  const numbers = Array.from({ length: MANY }, (_, n) => n);

  it('share few commits, and each gives its own result', async () => {
    let begun = 0;
    const begin = database.db.transaction.bind(database.db);
    database.db.transaction = () => {
      begun++;
      return begin();
    };
    const results = await Promise.all(numbers.map((n) => database.transact(note(n))));
    expect(results).to.deep.equal(numbers);
    expect(await noted()).to.deep.equal(numbers);
    expect(begun).to.be.within(1, MANY / 10);
  });

  it('fail alone: those that share a commit with a failing one are committed', async () => {
    const outcomes = await Promise.allSettled([note(1), note(2), note(1), note(3)].map(database.transact));
    expect(outcomes.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(await noted()).to.deep.equal([1, 2, 3]);
  });

  it('see the writes of those before them', async () => {
    const [, seen] = await Promise.all([
      database.transact(note(7)),
      database.transact(
        async (transaction) => (await sql<{ n: number }>`select n from notes`.execute(transaction)).rows,
      ),
    ]);
    expect(seen).to.deep.equal([{ n: 7 }]);
  });

  it('continue after a failure, and after a pause', async () => {
    await database.transact(note(1));
    await database.transact(note(1)).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await database.transact(note(2));
    expect(await noted()).to.deep.equal([1, 2]);
  });

  it('fail when the database is closed', async () => {
    await database.db.destroy();
    const refusal: unknown = await database.transact(note(1)).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(Error);
  });
});
