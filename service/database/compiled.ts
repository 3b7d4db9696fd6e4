import { type Compilable, type CompiledQuery, type Kysely, PostgresAdapter, type QueryResult } from 'kysely';
import type { Database } from './database';
import type { Schema } from './schema';

/** More values are those of many rows: such a statement is seldom repeated with the same number of rows. */
const MOST_VALUES = 100;

/** Stands for a value that is given when the statement runs. */
class Place {
  constructor(readonly index: number) {}

  [Symbol.toPrimitive](): never {
    throw new Error('A compiled statement must not compute with its values.');
  }
}

/**
 * Makes a statement that is built and compiled once for each number of values: Kysely takes longer for that
 * than SQLite takes to run it. It is for the statements of each delivery, each range of blocks and each
 * document. Plugins, which only tests have, are asked each time.
 *
 * @param build uses the values as they are: others stand in their place, for those of each run.
 */
export function compiled<Values extends object, Row>(
  build: (db: Kysely<Schema>, values: Values, engine: Database['engine']) => Compilable<Row>,
) {
  const known = new WeakMap<object, Map<string, CompiledQuery<Row>>>();
  return async (db: Kysely<Schema>, values: Values): Promise<QueryResult<Row>> => {
    const list: unknown[] = [];
    let shape = '';
    const toPlaces = (value: unknown): unknown => {
      if (Array.isArray(value)) {
        shape += `${value.length}/`;
        return value.map(toPlaces);
      }
      if ((value as object | null)?.constructor !== Object) return new Place(list.push(value) - 1);
      shape += `${Object.keys(value as object).join()}/`;
      return Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, toPlaces(one)]));
    };
    const places = toPlaces(values) as Values;
    const { adapter, plugins } = db.getExecutor();
    const engine = adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';
    if (list.length > MOST_VALUES || plugins.length > 0) return db.executeQuery(build(db, values, engine));
    const queries = known.get(adapter) ?? new Map<string, CompiledQuery<Row>>();
    known.set(adapter, queries);
    const query = queries.get(shape) ?? build(db, places, engine).compile();
    queries.set(shape, query);
    const parameters = query.parameters.map((one) => (one instanceof Place ? list[one.index] : one));
    return db.executeQuery({ ...query, parameters });
  };
}
