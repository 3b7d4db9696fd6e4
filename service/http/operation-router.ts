import { Readable } from 'node:stream';
import { Router, type RouterMiddleware } from '@koa/router';
import type { Context, Middleware } from 'koa';
import type * as z from 'zod';
import type { JsonParts } from '../answers/checking-pool';
import { cut } from '../base/errors';
import type { Time } from '../base/time';
import { onlyLooks, type Operation } from './description/operation';
import type { Access, Gate } from './gate';
import { HttpError } from './middleware/errors';
import { declaredBody, smallJson } from './read-body';
import type { AccessState } from './middleware/request-log';

/** An operation that is described, or one of the console's page alone. */
export type RoutedOperation = Pick<Operation, 'method' | 'path' | 'query' | 'isHarmless'> & {
  access: Access;
  body?: { kind: 'small' | 'document' };
};

/** A router of operations. */
export type OperationRouter = ReturnType<typeof createOperationRouter>;

/** @param isDatabaseRemoved whether what is stored now may be lost. */
export function createOperationRouter(time: Time, gate: Gate, isDatabaseRemoved = () => false) {
  const router = new Router();
  const storable: RouterMiddleware = async (ctx, next) => {
    if (isDatabaseRemoved()) {
      ctx.set('Retry-After', RESTORED_AFTER_S);
      const message = 'The database was removed, so nothing is stored until the operator has restored it.';
      throw new HttpError(503, 'DATABASE_REMOVED', message);
    }
    await next();
  };
  return {
    time,
    router,
    /**
     * Answers an operation. Its access, query and small body, and whether anything can be stored, are checked
     * before.
     */
    answer<State>(
      this: void,
      operation: RoutedOperation,
      ...route: RouterMiddleware<State & AccessState>[]
    ): void {
      const { method, path, query, body, access } = operation;
      const check = gate(operation);
      if (check === undefined) return;
      const checks = [check as RouterMiddleware];
      if (query) checks.push(checkQuery(query) as RouterMiddleware);
      if (body?.kind === 'small') checks.push(declaredBody, smallJson(time) as RouterMiddleware);
      if (!onlyLooks(operation)) checks.push(storable);
      if (access !== 'anyone' && access !== 'issuer if set') checks.push(noStore);
      const pattern = path.replace(/\{(\w+)\}/g, ':$1');
      router[method](pattern, ...checks, ...(route as RouterMiddleware[]));
    },
  };
}

/** Keeps an answer that not everybody may see out of caches. */
const noStore: RouterMiddleware = (ctx, next) => {
  ctx.set('Cache-Control', 'no-store');
  return next();
};

/** Seconds in `Retry-After` after which an operator may have restored the database. */
const RESTORED_AFTER_S = '60';

/** State that the check of the query sets for the route. */
interface QueryState<Query> {
  /** The checked parameters. */
  query: Query;
  /** The parameters as the request has them, without empty ones. */
  givenQuery: Readonly<Record<string, string>>;
}

/** The state of an operation with a query. */
export type QueryOf<Described extends { query: z.ZodType }> = QueryState<z.output<Described['query']>>;

/** Checks the parameters of a query, and refuses unknown ones. @throws HttpError QUERY_INVALID */
function checkQuery(schema: z.ZodObject): Middleware<QueryState<unknown>> {
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
      throw wrongQuery(cut(name), `is not known: ${known}`);
    }
    if (Array.isArray(value)) throw wrongQuery(name, 'is there twice: give it once');
    // PostgreSQL cannot store the character NUL, so nothing has it.
    if (value.includes('\0')) throw wrongQuery(name, 'has the character NUL (%00): leave it out');
    if (value !== '') given[name] = value;
  }
  return given;
}

/** An error that names the parameter. */
export function wrongQuery(name: string, problem: string): HttpError {
  return new HttpError(400, 'QUERY_INVALID', `The parameter ${name} ${problem}.`);
}

/** Names the next page (RFC 8288), which has the other parameters of this one. */
export function linkNextPage(ctx: Context & { state: QueryState<{ limit: number }> }, after: string): void {
  const { query, givenQuery } = ctx.state;
  const parameters = new URLSearchParams({ ...givenQuery, after, limit: String(query.limit) });
  ctx.set('Link', `<${ctx.path}?${parameters.toString()}>; rel="next"`);
}

/** Answers with JSON that is bytes already, without copying it. */
export function sendJson(ctx: Context, parts: JsonParts): void {
  ctx.type = 'json';
  ctx.body = Readable.from(parts, { objectMode: false });
  ctx.length = parts.reduce((length, part) => length + part.length, 0);
}
