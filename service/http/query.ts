import type { Context, Middleware } from 'koa';
import type { z } from 'zod';
import { HttpError } from './middleware/errors';

/** State that the middleware sets for the route. */
export interface QueryState<Query> {
  /** The checked parameters. */
  query: Query;
  /** The parameters as the request has them, without empty ones. */
  givenQuery: Readonly<Record<string, string>>;
}

/** The state of an operation with a query. */
export type QueryOf<Described extends { query: z.ZodType }> = QueryState<z.output<Described['query']>>;

/** Characters of an unknown name that an error repeats. */
const LONGEST_SHOWN = 64;

/** Checks the parameters of a query, and refuses unknown ones. @throws HttpError QUERY_INVALID */
export function checkQuery(schema: z.ZodObject): Middleware<QueryState<unknown>> {
  return async (ctx, next) => {
    const given = givenOf(ctx, Object.keys(schema.shape));
    const { data, error } = schema.safeParse(given);
    const [issue] = error?.issues ?? [];
    if (issue !== undefined) throw wrongQuery(String(issue.path[0]), issue.message);
    Object.assign(ctx.state, { query: data, givenQuery: given });
    await next();
  };
}

function givenOf(ctx: Context, names: readonly string[]): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value = ''] of Object.entries(ctx.query)) {
    if (!names.includes(name)) {
      const known = `leave it out, or write one of ${names.join(', ')}`;
      throw wrongQuery(name.slice(0, LONGEST_SHOWN), `is not known: ${known}`);
    }
    if (Array.isArray(value)) throw wrongQuery(name, 'is there twice: give it once');
    // PostgreSQL cannot store the character NUL, so nothing has it.
    if (value.includes('\0')) throw wrongQuery(name, 'has the character NUL (%00): leave it out');
    if (value !== '') given[name] = value;
  }
  return given;
}

/** Keeps an answer out of caches. */
export function noStore(ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
}

/** Names the next page (RFC 8288), which has the other parameters of this one. */
export function linkNextPage(ctx: Context & { state: QueryState<{ limit: number }> }, after: string): void {
  const { query, givenQuery } = ctx.state;
  const parameters = new URLSearchParams({ ...givenQuery, after, limit: String(query.limit) });
  ctx.set('Link', `<${ctx.path}?${parameters.toString()}>; rel="next"`);
}

/** An error that names the parameter. */
export function wrongQuery(name: string, problem: string): HttpError {
  return new HttpError(400, 'QUERY_INVALID', `The parameter ${name} ${problem}.`);
}
