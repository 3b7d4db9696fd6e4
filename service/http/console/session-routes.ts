import type { Router } from '@koa/router';
import type { Context } from 'koa';
import type { Console } from '../../console/console';
import { SESSION_MS } from '../../console/sessions';
import type { TokenFacts } from '../../console/session-token';
import type { LogIn, Session } from '../../console/views';
import { requireAdminKey } from '../middleware/admin-key';
import { declaredBody } from '../middleware/declared-body';
import { HttpError } from '../middleware/errors';
import { smallJson, type SmallJsonState } from '../middleware/json-body';
import { CONSOLE, LINKS, SESSION, sessionOf, setCookie } from './gate';

const KEY_WRONG =
  'The key is wrong, or the link was used or is older than 15 minutes. ' +
  'Use ADMIN_API_KEY or CONSOLE_READ_KEY, or make a new link.';

/** Answers logging in and out, and the links that log in once. */
export function answerSessions(
  router: Router,
  { sessions }: Pick<Console, 'sessions'>,
  adminApiKey: string,
): void {
  router.post<SmallJsonState>(SESSION, declaredBody, smallJson, (ctx) => {
    const outcome = sessions.logIn(logInOf(ctx.state.body), ctx.req.socket.remoteAddress ?? '');
    if (outcome === 'wrong') throw new HttpError(401, 'CONSOLE_KEY_WRONG', KEY_WRONG);
    if ('waitMs' in outcome) throw tooManyAttempts(ctx, outcome.waitMs);
    setCookie(ctx, outcome.cookie, SESSION_MS / 1_000);
    ctx.body = shown(outcome.session);
  });

  // The first question of every visitor: without a session it is no error, which a browser would log.
  router.get(SESSION, (ctx) => {
    const session = sessionOf(ctx, sessions);
    if (session === undefined) ctx.status = 204;
    else ctx.body = shown(session);
  });

  router.delete(SESSION, (ctx) => {
    const session = sessionOf(ctx, sessions);
    if (session !== undefined) sessions.end(session);
    setCookie(ctx, '', 0);
    ctx.status = 204;
  });

  router.post(LINKS, requireAdminKey(adminApiKey), (ctx) => {
    ctx.status = 201;
    ctx.body = { url: `${CONSOLE}#link=${sessions.newLink()}` };
  });
}

function shown({ role, expiresAt }: TokenFacts): Session {
  return { role, expiresAt };
}

function logInOf({ key, link }: Readonly<Record<string, unknown>>): LogIn {
  if (typeof key === 'string' && link === undefined) return { key };
  if (typeof link === 'string' && key === undefined) return { link };
  const message = 'The body must have one member, a text: {"key": "…"} or {"link": "…"}.';
  throw new HttpError(400, 'REQUEST_FIELD_INVALID', message);
}

function tooManyAttempts(ctx: Context, waitMs: number): HttpError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  ctx.set('Retry-After', String(seconds));
  return new HttpError(
    429,
    'CONSOLE_ATTEMPTS',
    `This key is wrong too. Log in with ADMIN_API_KEY or CONSOLE_READ_KEY. Try another key in ${seconds} s.`,
  );
}
