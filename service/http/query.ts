import type { Context } from 'koa';
import { HttpError } from './middleware/errors';

// The query of a path that lists things, page by page.

const LIMIT = { least: 1, most: 100, ifAbsent: 50 };

/** Keeps an answer out of caches. */
export function noStore(ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
}

/** Names the next page (RFC 8288). */
export function link(ctx: Context, query: Record<string, string | number>): void {
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  ctx.set('Link', `<${ctx.path}?${parameters.toString()}>; rel="next"`);
}

/** A parameter; undefined if it is absent or empty. */
export function textOf(ctx: Context, name: string): string | undefined {
  const value = ctx.query[name];
  if (Array.isArray(value)) throw wrongQuery(name, 'is there twice');
  return value === '' ? undefined : value;
}

/** The largest number of entries of a page. */
export function limitOf(ctx: Context): number {
  const text = textOf(ctx, 'limit');
  if (text === undefined) return LIMIT.ifAbsent;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= LIMIT.least && limit <= LIMIT.most) return limit;
  throw wrongQuery('limit', `must be a whole number from ${LIMIT.least} to ${LIMIT.most}`);
}

/** An error that names the parameter. */
export function wrongQuery(name: string, problem: string): HttpError {
  return new HttpError(400, 'QUERY_INVALID', `The parameter ${name} ${problem}.`);
}
