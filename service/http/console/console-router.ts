import type { Middleware } from 'koa';
import { Router } from '@koa/router';
import type { Console } from '../../console/console';
import { HttpError } from '../middleware/errors';
import { answerQuestions } from './question-routes';
import { API, requireSession, type SessionState } from './gate';
import { answerPage } from './page';
import { answerSessions } from './session-routes';

/** The routes of the console's page and of its own data. They are for the page alone: no API for others. */
export function consoleRouter(parts: Console & { adminApiKey: string }): Router {
  const router = new Router();
  answerPage(router);
  answerSessions(router, parts, parts.adminApiKey);
  router.get(`${API}/facts`, requireSession, async (ctx) => {
    ctx.body = await parts.facts();
  });
  router.get(`${API}/overview`, requireSession, async (ctx) => {
    ctx.body = await parts.overview();
  });
  router.get<SessionState>(`${API}/stream`, requireSession, stream(parts));
  answerQuestions(router, parts);
  return router;
}

/** Seconds after which to ask for a stream again. */
const ASK_AGAIN_S = '10';

function stream({ streams }: Pick<Console, 'streams'>): Middleware<SessionState> {
  return (ctx) => {
    ctx.type = 'text/event-stream';
    // Some proxies would keep events back until more arrive.
    ctx.set('X-Accel-Buffering', 'no');
    ctx.status = 200;
    if (ctx.method === 'HEAD') return;
    const opened = streams.open(ctx.state.session, () => ctx.res.writableLength);
    if (opened === undefined) {
      ctx.set('Retry-After', ASK_AGAIN_S);
      throw new HttpError(503, 'CONSOLE_STREAMS', 'Too many pages of the console are open: close some.');
    }
    ctx.body = opened;
  };
}
