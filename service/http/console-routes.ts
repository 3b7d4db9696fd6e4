import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Router } from '@koa/router';
import type { Context } from 'koa';
import { RequestError } from '../base/errors';
import type { Answers } from '../answers/answers';
import type { CheckingPool } from '../answers/checking-pool';
import type { WalletLogin } from '../access/wallet-login';
import type { PageSession, Sessions } from '../console/sessions';
import type { Facts, LogIn, Overview, Session } from '../console/views';
import { CONSOLE, expectOwnPage, pageSession } from './gate';
import { sendJson, type OperationRouter } from './operation-router';
import { arrived, checkDeclaredBody, readBody, readSmallJson, SMALL_BYTES } from './read-body';
import { builtFile } from './routes/published';
import { documentUnknown, tokenIdIn } from './routes/documents';
import type { RefuseKey } from './wrong-keys';

const API = `${CONSOLE}/api`;
const SESSION = `${API}/session`;

/** The parts of the console that its own paths need. */
export interface Console extends Pick<CheckingPool, 'validate'>, Pick<Answers, 'progress'> {
  readonly sessions: Sessions;
  facts(this: void): Promise<Facts>;
  overview(this: void): Promise<Overview>;
}

type ConsoleParts = Console & { refuseKey: RefuseKey; wallets: Pick<WalletLogin, 'place'> | undefined };

/** Answers the console's page, and what is for the page alone: no API for others. */
export function answerConsole(operations: OperationRouter, parts: ConsoleParts): void {
  const { time, router, answer } = operations;
  answerPage(router);
  answerSessions(operations, parts);
  answer({ access: 'session', scope: 'read', method: 'get', path: `${API}/facts` }, async (ctx) => {
    const facts = await parts.facts();
    ctx.body = ctx.state.holder ? { ...facts, canIssue: false } : facts;
  });
  const tagged = createTagger();
  answer({ access: 'session', scope: 'read', method: 'get', path: `${API}/overview` }, async (ctx) => {
    // Each page asks once a second.
    ctx.state.isRoutine = true;
    // A holder sees nothing of the service, only that it answers.
    if (ctx.state.holder) {
      ctx.status = 204;
      return;
    }
    const { etag, json } = tagged(await parts.overview());
    ctx.set('ETag', etag);
    // Not `ctx.fresh`: a browser adds `Cache-Control: no-cache` to a request that names an ETag.
    if (ctx.get('If-None-Match') === etag) {
      ctx.status = 304;
      return;
    }
    ctx.type = 'json';
    ctx.body = json;
  });
  answer({ access: 'session', method: 'post', path: `${API}/validate`, isHarmless: true }, async (ctx) => {
    checkDeclaredBody(ctx);
    sendJson(ctx, await parts.validate(await arrived(time, ctx, readBody(ctx.req, SMALL_BYTES))));
  });
  answer({ access: 'session', method: 'get', path: `${API}/documents/{tokenId}/progress` }, async (ctx) => {
    const { tokenId = '' } = ctx.params;
    const progress = await parts.progress(tokenIdIn(tokenId));
    if (progress === undefined) throw documentUnknown();
    ctx.body = progress;
  });
}

/** Makes the ETag of an overview, which names all but the time, once for all pages that ask for it. */
function createTagger(): (overview: Overview) => { etag: string; json: string } {
  let last: { of: Overview; etag: string; json: string } | undefined;
  return (overview) => {
    if (last?.of === overview) return last;
    const content = JSON.stringify({ ...overview, at: undefined });
    const etag = `"${createHash('sha256').update(content).digest('base64url')}"`;
    last = { of: overview, etag, json: JSON.stringify(overview) };
    return last;
  };
}

const KEY_WRONG =
  'The key is wrong, or the link was used or is older than 15 minutes. ' +
  'Use ADMIN_API_KEY, CONSOLE_READ_KEY, or a key with a scope that may read, or make a new link.';

/** Answers logging in and out, and the links that log in once. */
function answerSessions(
  { time, router, answer }: OperationRouter,
  { sessions, refuseKey, wallets }: ConsoleParts,
): void {
  router.post(SESSION, async (ctx) => {
    expectOwnPage(ctx);
    const given = logInOf(await readSmallJson(time, ctx));
    const loggedIn = await sessions.logIn(given);
    if (loggedIn === undefined) {
      const wrong = new RequestError('CONSOLE_KEY_WRONG', KEY_WRONG);
      // A link is too long to be guessed, so it need not wait.
      throw 'key' in given ? refuseKey(ctx, wrong) : wrong;
    }
    const { session, cookie } = loggedIn;
    setCookie(ctx, `${sessions.cookieName}=${cookie}`, Math.floor((session.expiresAt - time.now()) / 1_000));
    ctx.body = shown(session);
  });

  // The first question of every visitor: without a session it is no error, which a browser would log.
  router.get(SESSION, async (ctx) => {
    const session = await pageSession(ctx, sessions);
    if (session === undefined) ctx.status = 204;
    else ctx.body = shown(session);
  });

  router.delete(SESSION, (ctx) => {
    expectOwnPage(ctx);
    sessions.end(ctx.cookies.get(sessions.cookieName) ?? '');
    setCookie(ctx, `${sessions.cookieName}=`, 0);
    ctx.status = 204;
  });

  // Visitors without a session ask, before their wallet does.
  router.get(`${API}/wallet-login`, (ctx) => {
    ctx.body = wallets?.place();
  });

  // Programs call it with ADMIN_API_KEY. No page does: a session must not prolong itself. A link operates.
  answer({ access: 'admin', method: 'post', path: `${API}/links`, isHarmless: true }, (ctx) => {
    if (ctx.state.role !== 'admin') throw new RequestError('CONSOLE_KEY_WRONG', 'Send ADMIN_API_KEY.');
    ctx.status = 201;
    ctx.body = { url: `${CONSOLE}#link=${sessions.newLink()}` };
  });
}

/** Pages of other sites do not send the cookie. The public operations of the service need it too. */
function setCookie(ctx: Context, cookie: string, maxAgeSeconds: number): void {
  const isHttps = ctx.get('Origin').startsWith('https:');
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
  ctx.set('Set-Cookie', `${cookie}; ${attributes}${isHttps ? '; Secure' : ''}`);
}

function shown({ role, owner, expiresAt, holder }: PageSession): Session {
  return { role, owner, expiresAt, ...(holder && { holder: { name: holder.name, may: holder.may } }) };
}

function logInOf({ key, link }: Readonly<Record<string, unknown>>): LogIn {
  if (typeof key === 'string' && link === undefined) return { key };
  if (typeof link === 'string' && key === undefined) return { link };
  const message = 'The body must have one member, a text: {"key": "…"} or {"link": "…"}.';
  throw new RequestError('REQUEST_FIELD_INVALID', message);
}

const NOT_BUILT = new RequestError(
  'CONSOLE_NOT_BUILT',
  'The page of the console is not built: run `npm run build`, and restart the service.',
);
/** Another build may have other files under the same names. */
const ASK_AGAIN = { 'Cache-Control': 'no-cache' };
const PAGE_HEADERS = {
  ...ASK_AGAIN,
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
};

/** Answers the page and its files. They hold no data, so they need no session. */
export function answerPage(router: Router, folder = 'dist/console'): void {
  const file = (name: string, mediaType: string, headers = ASK_AGAIN) =>
    builtFile(join(folder, name), `${mediaType}; charset=utf-8`, headers, NOT_BUILT);
  router.get(CONSOLE, file('index.html', 'text/html', PAGE_HEADERS));
  router.get(`${CONSOLE}/app.js`, file('app.js', 'text/javascript'));
  router.get(`${CONSOLE}/app.css`, file('app.css', 'text/css'));
}
