import { Readable } from 'node:stream';
import { Router, type RouterContext } from '@koa/router';
import type { Context, Middleware } from 'koa';
import type * as z from 'zod';
import type { JsonParts } from '../answers/checking-pool';
import { cut } from '../base/errors';
import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import type { JsonObject } from '../issuance/credential';
import { onlyLooks, type Operation } from './description/operation';
import { HttpError } from './errors';
import type { Access, Gate } from './gate';
import { readSmallJson } from './read-body';
import type { RequestState } from './request-log';

/** An operation that is described, or one of the console's page alone. */
export type RoutedOperation = Pick<Operation, 'method' | 'path' | 'query' | 'isHarmless'> & {
  access: Access;
  body?: { kind: 'small' | 'document' };
};

/** The checked query of a request. */
interface QueryState<Query> {
  /** The checked parameters. */
  query: Query;
  /** The parameters as the request has them, without empty ones. */
  givenQuery: Readonly<Record<string, string>>;
}

/** The state of a request when it reaches the route of its operation. */
type StateOf<Routed extends RoutedOperation> = RequestState &
  (Routed extends { query: infer Query extends z.ZodType } ? QueryState<z.output<Query>> : unknown) &
  (Routed extends { body: { kind: 'small' } } ? { body: JsonObject } : unknown);

/** Routes the operations of the service. */
export interface OperationRouter {
  time: Time;
  router: Router;
  /**
   * Answers an operation. Its access, query and small body, and whether anything can be stored, are checked
   * before.
   */
  answer<Routed extends RoutedOperation>(
    this: void,
    operation: Routed,
    route: (ctx: RouterContext<StateOf<Routed>>) => Promise<void> | void,
  ): void;
}

/** @param isDatabaseRemoved whether what is stored now may be lost. */
export function createOperationRouter(
  time: Time,
  gate: Gate,
  isDatabaseRemoved = () => false,
): OperationRouter {
  const router = new Router();
  return {
    time,
    router,
    answer(operation, route) {
      const { method, path, query, body, access } = operation;
      const check = gate(operation);
      if (check === undefined) return;
      router[method](path.replace(/\{(\w+)\}/g, ':$1'), async (ctx: RouterContext) => {
        ctx.state.operation = `${method.toUpperCase()} ${path}`;
        check(ctx);
        if (query) Object.assign(ctx.state, checkedQuery(query, ctx));
        if (body?.kind === 'small') ctx.state.body = await readSmallJson(time, ctx);
        if (!onlyLooks(operation) && isDatabaseRemoved()) throw databaseRemoved(ctx);
        // Keeps an answer that not everybody may see out of caches.
        if (access !== 'anyone' && access !== 'issuer if set') ctx.set('Cache-Control', 'no-store');
        await route(ctx);
      });
    },
  };
}

/** Tells of each answer how long it took. It names the operation: callers choose the path. */
export function tellAnswers(time: Time, lifecycle: Lifecycle): Middleware<RequestState> {
  return async (ctx, next) => {
    const start = time.elapsed();
    await next();
    lifecycle.emit('answered', ctx.state.operation ?? 'none', ctx.status, time.elapsed() - start);
  };
}

/** Seconds in `Retry-After` after which an operator may have restored the database. */
const RESTORED_AFTER_S = '60';

function databaseRemoved(ctx: Context): HttpError {
  ctx.set('Retry-After', RESTORED_AFTER_S);
  const message = 'The database was removed, so nothing is stored until the operator has restored it.';
  return new HttpError(503, 'DATABASE_REMOVED', message);
}

/** Checks the parameters of a query, and refuses unknown ones. @throws HttpError QUERY_INVALID */
function checkedQuery(schema: z.ZodObject, ctx: Context): QueryState<unknown> {
  const givenQuery = namedParameters(ctx, Object.keys(schema.shape));
  const { data: query, error } = schema.safeParse(givenQuery);
  const [issue] = error?.issues ?? [];
  if (issue !== undefined) throw wrongQuery(String(issue.path[0]), issue.message);
  return { query, givenQuery };
}
function namedParameters(ctx: Context, names: readonly string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const [name, value = ''] of Object.entries(ctx.query)) {
    if (!names.includes(name)) {
      const known = `leave it out, or write one of ${names.join(', ')}`;
      throw wrongQuery(cut(name), `is not known: ${known}`);
    }
    if (Array.isArray(value)) throw wrongQuery(name, 'is there twice: give it once');
    // PostgreSQL cannot store the character NUL, so nothing has it.
    if (value.includes('\0')) throw wrongQuery(name, 'has the character NUL (%00): leave it out');
    if (value !== '') parameters[name] = value;
  }
  return parameters;
}

/** An error that names the parameter. */
export function wrongQuery(name: string, problem: string): HttpError {
  return new HttpError(400, 'QUERY_INVALID', `The parameter ${name} ${problem.replace(/\.$/, '')}.`);
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
