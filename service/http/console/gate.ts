import type { Context, Middleware } from 'koa';
import type { TokenFacts } from '../../console/session-token';
import type { Sessions } from '../../console/sessions';
import { HttpError } from '../middleware/errors';

/** State that the middleware sets for the routes. */
export interface SessionState {
  session: TokenFacts;
}

/** The common beginning of the paths of the console. */
export const CONSOLE = '/console';
export const API = `${CONSOLE}/api`;
export const SESSION = `${API}/session`;
/** Programs call it with ADMIN_API_KEY. No page does. */
export const LINKS = `${API}/links`;
const COOKIE = 'console';
/** Characters of a header that an error repeats. */
const LONGEST_SHOWN = 100;

/** The requests that readers may send although they are not GET: they change nothing of the service. */
const HARMLESS = [`${API}/validate`, `${API}/token`, `${API}/verify`];

/** The page and its files hold no data. */
export const PAGE = { html: CONSOLE, script: `${CONSOLE}/app.js`, style: `${CONSOLE}/app.css` };

/** Routers take a path with a slash at its end for the same. */
function isOfPage(path: string): boolean {
  return Object.values(PAGE).includes(path.replace(/\/$/, ''));
}

/** Whether a path is one of the console, in any case: a router may not tell cases apart. */
export function isOfConsole(path: string): boolean {
  return `${path.toLowerCase()}/`.startsWith(`${CONSOLE}/`);
}

/**
 * Lets a request to the console pass only if it comes from the console's own page and has a session that may
 * send it. Every path needs one, known or not, except the page's own and that of the session itself.
 */
export function consoleGate(sessions: Sessions): Middleware<Partial<SessionState>> {
  return async (ctx, next) => {
    const { path } = ctx;
    if (!isOfConsole(path) || path === LINKS) {
      await next();
      return;
    }
    const isReading = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (!isReading && !isFromOwnPage(ctx)) {
      const message =
        `The Origin ${ctx.get('Origin').slice(0, LONGEST_SHOWN) || '(none)'} is not that of this console, ` +
        `whose Host is ${ctx.get('Host').slice(0, LONGEST_SHOWN)}. Let the proxy pass Host on unchanged.`;
      throw new HttpError(403, 'CONSOLE_ORIGIN_WRONG', message);
    }
    if (path === SESSION || (isReading && isOfPage(path))) {
      await next();
      return;
    }
    const session = sessionOf(ctx, sessions);
    if (session === undefined) throw sessionEnded();
    if (session.role === 'reader' && !isReading && !HARMLESS.includes(path)) {
      const message = 'CONSOLE_READ_KEY only looks. Log in with ADMIN_API_KEY to change something.';
      throw new HttpError(403, 'CONSOLE_READ_ONLY', message);
    }
    ctx.state.session = session;
    await next();
  };
}

/** A second check beside the gate, in the routes themselves. */
export const requireSession: Middleware = async (ctx, next) => {
  if ((ctx.state as Partial<SessionState>).session === undefined) throw sessionEnded();
  await next();
};

function sessionEnded(): HttpError {
  return new HttpError(401, 'CONSOLE_SESSION_ENDED', 'There is no session, or it has ended: log in.');
}

/** The session of a request; undefined if it has none. */
export function sessionOf(ctx: Context, sessions: Sessions): TokenFacts | undefined {
  return sessions.find(ctx.cookies.get(COOKIE) ?? '');
}

/** Sets the cookie, or removes it if the value is empty. Pages of other sites do not send it. */
export function setCookie(ctx: Context, value: string, maxAgeSeconds: number): void {
  const isHttps = ctx.get('Origin').startsWith('https:');
  const cookie = `${COOKIE}=${value}; Path=${CONSOLE}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
  ctx.set('Set-Cookie', isHttps ? `${cookie}; Secure` : cookie);
}

/** A browser sends Origin with each request that is not GET or HEAD. */
function isFromOwnPage(ctx: Context): boolean {
  const origin = ctx.get('Origin');
  return URL.canParse(origin) && new URL(origin).host === hostOf(origin, ctx.get('Host'));
}

/** Host without the usual port of the scheme, as an Origin has it. */
function hostOf(origin: string, host: string): string | undefined {
  const url = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(url) ? new URL(url).host : undefined;
}
