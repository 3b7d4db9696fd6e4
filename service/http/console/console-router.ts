import { createHash } from 'node:crypto';
import { Router } from '@koa/router';
import type { Console } from '../../console/console';
import type { Overview } from '../../console/views';
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
  const tagged = createTagger();
  router.get<Partial<RequestState>>(`${API}/overview`, requireSession, async (ctx) => {
    // Each page asks once a second.
    ctx.state.isRoutine = true;
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
  answerQuestions(router, parts);
  return router;
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
