import { createHash } from 'node:crypto';
import { Router } from '@koa/router';
import type { Console } from '../../console/console';
import type { RequestState } from '../middleware/request-log';
import { answerQuestions } from './question-routes';
import { API, requireSession } from './gate';
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
  router.get<Partial<RequestState>>(`${API}/overview`, requireSession, async (ctx) => {
    // Each page asks once a second.
    ctx.state.isRoutine = true;
    const { at, ...content } = await parts.overview();
    const etag = `"${createHash('sha256').update(JSON.stringify(content)).digest('base64url')}"`;
    ctx.set('ETag', etag);
    // Not `ctx.fresh`: a browser adds `Cache-Control: no-cache` to a request that names an ETag.
    if (ctx.get('If-None-Match') === etag) ctx.status = 304;
    else ctx.body = { at, ...content };
  });
  answerQuestions(router, parts);
  return router;
}
