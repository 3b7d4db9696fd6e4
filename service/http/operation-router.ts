import { Readable } from 'node:stream';
import { Router, type RouterContext } from '@koa/router';
import type { Context } from 'koa';
import type * as z from 'zod';
import type { JsonParts } from '../answers/checking-pool';
import { cut, orUndefined, RequestError, UnavailableError } from '../base/errors';
import { seal, unseal } from '../base/seal';
import type { Time } from '../base/time';
import type { JsonObject } from '../issuance/credential';
import { onlyLooks, type Operation } from './description/operation';
import type { Gate, GatedOperation } from './gate';
import { readSmallJson } from './read-body';
import type { RequestState } from './request-log';

/** An operation that is described, or one of the console's page alone. */
export type RoutedOperation = GatedOperation &
  Pick<Operation, 'path' | 'query'> & {
    body?: { kind: 'small' | 'document' };
    answers?: Operation['answers'];
  };

/** The checked query of a request. */
interface QueryState<Query> {
  /** The checked parameters. */
  query: Query;
  /** The parameters as the request has them, without empty ones. */
  givenQuery: Readonly<Record<string, string>>;
  /** The position of a page, as the caller sees it. */
  sealed(this: void, position: unknown): string;
}

/** Positions of one length say little: the keys of two rows, or the id of a token, in JSON. */
const POSITION_CHARACTERS = 128;

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

/**
 * @param pageKey seals the positions of pages; 32 bytes.
 * @param isDatabaseRemoved whether what is stored now may be lost.
 */
export function createOperationRouter(
  time: Time,
  gate: Gate,
  pageKey: Uint8Array,
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
        // Keeps an answer that not everybody may see out of caches.
        if (access !== 'anyone' && access !== 'issuer if set') ctx.set(FOR_THE_CALLER);
        await check(ctx);
        const { holder } = ctx.state as RequestState;
        const isPaged = operation.answers?.[200]?.headers?.Link !== undefined;
        // A position counts the events and deliveries of all: no caller reads it, or uses that of another.
        const context = `pages of ${path} for ${holder?.owner ?? 'all'}`;
        const opened = (text: string): string => (isPaged ? unseal(pageKey, text, context).toString() : text);
        const sealed = (position: unknown): string =>
          seal(pageKey, Buffer.from(JSON.stringify(position).padEnd(POSITION_CHARACTERS)), context);
        if (query) Object.assign(ctx.state, { ...checkedQuery(query, ctx, opened), sealed });
        if (body?.kind === 'small') ctx.state.body = await readSmallJson(time, ctx);
        if (!onlyLooks(operation) && isDatabaseRemoved()) throw databaseRemoved();
        await route(ctx);
        // The key may have ended during a long wait.
        if (holder && onlyLooks(operation)) await check(ctx);
      });
    },
  };
}

/** Headers of an answer that depends on who asks. */
const FOR_THE_CALLER = { 'Cache-Control': 'private, no-store', Vary: 'Authorization, Cookie' };

/** An operator may have restored the database by then. */
const RESTORED_AFTER_MS = 60_000;

function databaseRemoved(): UnavailableError {
  const message = 'The database was removed, so nothing is stored until the operator has restored it.';
  return new UnavailableError('DATABASE_REMOVED', message, { retryAfterMs: RESTORED_AFTER_MS });
}

/** Checks the parameters of a query, and refuses unknown ones. @throws RequestError QUERY_INVALID */
function checkedQuery(schema: z.ZodObject, ctx: Context, opened: (after: string) => string) {
  const givenQuery = namedParameters(ctx, Object.keys(schema.shape));
  const { after } = givenQuery;
  const position = after === undefined ? undefined : orUndefined(() => opened(after));
  if (after !== undefined && position === undefined)
    throw wrongQuery('after', 'must be taken from the header Link of a page of yours');
  const { data: query, error } = schema.safeParse({ ...givenQuery, ...(after && { after: position }) });
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
export function wrongQuery(name: string, problem: string): RequestError {
  return new RequestError('QUERY_INVALID', `The parameter ${name} ${problem.replace(/\.$/, '')}.`);
}

/** Names the next page (RFC 8288), which has the other parameters of this one. */
export function linkNextPage(
  ctx: Context & { state: QueryState<{ limit: number }> },
  position: unknown,
): void {
  const { query, givenQuery, sealed } = ctx.state;
  const after = sealed(position);
  const parameters = new URLSearchParams({ ...givenQuery, after, limit: String(query.limit) });
  ctx.set('Link', `<${ctx.path}?${parameters.toString()}>; rel="next"`);
}

/** Answers with JSON that is bytes already, without copying it. */
export function sendJson(ctx: Context, parts: JsonParts): void {
  ctx.type = 'json';
  ctx.body = Readable.from(parts, { objectMode: false });
  ctx.length = parts.reduce((length, part) => length + part.length, 0);
}
