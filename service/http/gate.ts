import type { Context, Middleware } from 'koa';
import { isAccessKey, type AccessKeys } from '../access/access-keys';
import { cut, orUndefined, RequestError } from '../base/errors';
import { isSame, type PageSession, type Sessions } from '../console/sessions';
import { onlyLooks, type Operation } from './description/operation';
import type { AccessState } from './request-log';
import type { RefuseKey } from './wrong-keys';

/** The keys of the service, and the sessions of its console, if it has one. */
export interface GateOptions {
  /** `reader`: it may read all. */
  secrets: Readonly<Record<KeyRole, string | undefined>>;
  /** The keys that see a part. */
  keys: Pick<AccessKeys, 'find'> | undefined;
  sessions: Sessions | undefined;
  refuseKey: RefuseKey;
}

/** `session`: for the console's page alone. */
export type Access = Operation['access'] | 'session';

/** An operation, as far as it decides who may ask for it. */
export type GatedOperation = Pick<Operation, 'method' | 'isHarmless' | 'scope'> & { access: Access };

/** The check of the requests of an operation. Undefined: the operation does not exist. */
export type Gate = (operation: GatedOperation) => ((ctx: Context) => Promise<void>) | undefined;

type KeyRole = 'issuer' | 'admin' | 'reader';

const OPENED_BY: Readonly<Record<Exclude<Access, 'anyone'>, readonly KeyRole[]>> = {
  'issuer if set': ['issuer'],
  issuer: ['issuer'],
  admin: ['admin', 'reader'],
  'any key': ['issuer', 'admin', 'reader'],
  session: [],
};

/** The scheme is case-insensitive, and one or more spaces follow it (RFC 9110, section 11). */
const BEARER = /^bearer +/i;

/**
 * Decides who may do what. A bearer key decides alone. Otherwise a session takes the place of all keys. Both
 * give a role: that of an operator for everything, that of a reader for what only looks, and that of a holder
 * for the operations of a scope. A session that has ended refuses nothing that needs no key.
 */
export function createGate({ secrets, keys, sessions, refuseKey }: GateOptions): Gate {
  return (operation) => {
    const { access } = operation;
    if (access === 'anyone') return () => Promise.resolve();
    const roles = OPENED_BY[access].filter((role) => secrets[role] !== undefined);
    const isOpen = access === 'issuer if set' && secrets.issuer === undefined;
    if (roles.length === 0 && !isOpen && sessions === undefined) return undefined;

    async function byKey(ctx: Context, key: string | undefined): Promise<AccessState> {
      const role = roles.find((one) => isSame(key ?? '', secrets[one]));
      if (role !== undefined) return { role };
      if (isOpen) return {};
      const holder = key !== undefined && roles.length > 0 ? await keys?.find(key) : undefined;
      if (holder !== undefined) return { role: 'holder', holder };
      const wrong = refusal(ctx, access, roles, key);
      throw key !== undefined && wrong.status === 401 ? refuseKey(ctx, wrong) : wrong;
    }

    async function bySession(ctx: Context, open: Sessions): Promise<AccessState> {
      const found = await pageSession(ctx, open);
      // Another tab of the page may have logged somebody else in.
      const session = found && ['', found.owner].includes(ctx.get('X-Console-Owner')) ? found : undefined;
      if (session === undefined && (found || !isOpen)) throw sessionEnded();
      if (session === undefined) return {};
      const { role, holder } = session;
      return { session, role, ...(holder && { holder }) };
    }

    return async (ctx) => {
      const given = ctx.get('Authorization');
      const key = BEARER.test(given) ? given.replace(BEARER, '') : undefined;
      const isOfPage =
        key === undefined && sessions !== undefined && ctx.cookies.get(sessions.cookieName) !== undefined;
      const caller = await (isOfPage ? bySession(ctx, sessions) : byKey(ctx, key));
      expectAllowed(caller, operation);
      Object.assign(ctx.state, caller);
    };
  };
}

/** @throws RequestError KEY_READ_ONLY, KEY_MAY_NOT. */
function expectAllowed({ role, holder }: AccessState, operation: GatedOperation): void {
  if (role === 'reader' && !onlyLooks(operation)) {
    const message = 'CONSOLE_READ_KEY only looks. Use ADMIN_API_KEY to change something.';
    throw new RequestError('KEY_READ_ONLY', message);
  }
  const { scope } = operation;
  if (holder === undefined || (scope !== undefined && holder.may.includes(scope))) return;
  const needed =
    scope === undefined ? 'It is not for keys with a scope.' : `It needs a key that may ${scope}.`;
  const message = `Your key may not do this: it may ${holder.may.join(' and ')}. ${needed}`;
  throw new RequestError('KEY_MAY_NOT', message);
}

function refusal(ctx: Context, access: Access, roles: readonly KeyRole[], key = ''): RequestError {
  if (access === 'session') return sessionEnded();
  if (roles.length === 0) return new RequestError('NOT_FOUND', 'There is nothing at this path.');
  ctx.set('WWW-Authenticate', 'Bearer');
  if (isAccessKey(key))
    return new RequestError('ACCESS_KEY_WRONG', 'The key is wrong, or it has ended. Ask for a new one.');
  const named = { admin: '<ADMIN_API_KEY>', issuer: '<API_KEY>', reader: undefined };
  const names = roles.flatMap((role) => named[role] ?? []);
  const message = `This endpoint needs the header Authorization: Bearer ${names.join(' or ')}.`;
  return new RequestError(access === 'admin' ? 'ADMIN_API_KEY_WRONG' : 'API_KEY_WRONG', message);
}

function sessionEnded(): RequestError {
  return new RequestError('CONSOLE_SESSION_ENDED', 'There is no session, or it has ended: log in.');
}

/** The session of a request of the console's own page; undefined if it has none. @throws as expectOwnPage */
export async function pageSession(ctx: Context, sessions: Sessions): Promise<PageSession | undefined> {
  expectOwnPage(ctx);
  return sessions.find(ctx.cookies.get(sessions.cookieName) ?? '');
}

/**
 * Takes requests of the console's own page alone. Nothing may keep the answer.
 *
 * @throws RequestError CONSOLE_ORIGIN_WRONG. Pages on other ports of the host have the cookie, too.
 */
export function expectOwnPage(ctx: Context): void {
  ctx.set(CONSOLE_HEADERS);
  const isReading = ctx.method === 'GET' || ctx.method === 'HEAD';
  if (!['', 'same-origin', 'none'].includes(ctx.get('Sec-Fetch-Site'))) {
    const message =
      "The request comes from another site's page, or from another port of this host (Sec-Fetch-Site). " +
      'Send it from the page of the console, or with a key.';
    throw new RequestError('CONSOLE_ORIGIN_WRONG', message);
  }
  if (!isReading && !hasOwnOrigin(ctx)) {
    const message =
      `The Origin ${cut(ctx.get('Origin')) || '(none)'} is not that of this console, ` +
      `whose Host is ${cut(ctx.get('Host'))}. Let the proxy pass Host on unchanged.`;
    throw new RequestError('CONSOLE_ORIGIN_WRONG', message);
  }
}

/** A browser sends Origin with each request that is not GET or HEAD. */
function hasOwnOrigin(ctx: Context): boolean {
  const origin = ctx.get('Origin');
  return URL.canParse(origin) && new URL(origin).host === hostOf(origin, ctx.get('Host'));
}

/** Host without the usual port of the scheme, as an Origin has it. */
function hostOf(origin: string, host: string): string | undefined {
  const url = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/**
 * Headers of every response (docs/specification.md 5.2). Scripts of another origin can read only the
 * service's headers that are exposed here.
 */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Origin, X-Requested-With, Content-Type, Accept',
  'Access-Control-Expose-Headers': 'X-Error-Code, X-Request-Id, X-Token-Id, Retry-After',
} as const;

/** The common beginning of the paths of the console. */
export const CONSOLE = '/console';

/** Whether a path is one of the console, in any case: a router may not tell cases apart. */
export function isOfConsole(path: string): boolean {
  return `${path.toLowerCase()}/`.startsWith(`${CONSOLE}/`);
}

/** Headers of every answer to the console's page: it is for that page alone, and nothing keeps it. */
export const CONSOLE_HEADERS = {
  'Cache-Control': 'private, no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/** Sets the headers of all responses. Those of the console have no cross-origin headers. Answers OPTIONS. */
export const cors: Middleware = (ctx, next) => {
  // Koa's ctx.path throws for a target that is no URL (RFC 9112, section 3.2).
  if (isOfConsole(orUndefined(() => ctx.path) ?? '')) {
    ctx.set(CONSOLE_HEADERS);
    return next();
  }
  ctx.set(CORS_HEADERS);
  if (ctx.method !== 'OPTIONS') return next();
  ctx.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, OPTIONS');
  ctx.status = 204;
};
