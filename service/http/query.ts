import type { Context, Middleware } from 'koa';
import type { z } from 'zod';
import { HttpError } from './middleware/errors';

/** State that the middleware sets for the route. */
export interface QueryState<Query> {
  /** The checked parameters. */
  query: Query;
  /** The parameters as the request has them, without empty and unknown ones. */
  givenQuery: Readonly<Record<string, string>>;
}

/** Checks the parameters of a query. Unknown ones are ignored. @throws HttpError QUERY_INVALID */
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
  for (const name of names) {
    const value = ctx.query[name];
    if (Array.isArray(value)) throw wrongQuery(name, 'is there twice: give it once');
    if (value !== undefined && value !== '') given[name] = value;
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
