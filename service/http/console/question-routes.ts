import type { Router, RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { Answers } from '../../console/console';
import { callerLeft, type CallerState } from '../middleware/caller-left';
import { declaredBody } from '../middleware/declared-body';
import { HttpError } from '../middleware/errors';
import { limitBodies } from '../middleware/limit-bodies';
import { smallJson, type SmallJsonState } from '../middleware/json-body';
import { LIMIT_BYTES, SMALL_BYTES } from '../body-limit';
import { checkQuery, type QueryState } from '../query';
import { documentUnknown, tokenIdIn } from '../routes/issued-document';
import { API, requireSession } from './gate';
import { rawBody, type RawBodyState } from './raw-body';

const SMALL = { bytes: SMALL_BYTES, words: '64 KB' };
const LARGE = { bytes: LIMIT_BYTES, words: '50 MB' };

const WRONG_LIMIT = { error: 'must be a whole number from 1 to 200' };
const DELIVERIES_QUERY = z.object({
  state: z
    .enum(['waiting', 'failed', 'dead', 'delivered'], {
      error: 'must be one of waiting, failed, dead, delivered',
    })
    .optional(),
  subscription: z.string().max(64, { error: 'is no id of a subscription' }).optional(),
  limit: z.coerce.number(WRONG_LIMIT).int(WRONG_LIMIT).min(1, WRONG_LIMIT).max(200, WRONG_LIMIT).default(50),
});

/** Documents that are verified at once. Those that are issued have permits of their own. */
const VERIFYING = { large: { permits: 1, waiting: 5 } };

const EVENT_UNKNOWN =
  'There is no event with this id, or it was removed. Look for it in the list of deliveries.';

/** Answers the questions of the page. The bodies of `token` and `verify` are neither logged nor stored. */
export function answerQuestions(router: Router, answers: Answers): void {
  const small = [requireSession, declaredBody, rawBody(SMALL)] as RouterMiddleware[];
  const limit = limitBodies(VERIFYING);
  const large = [requireSession, callerLeft, declaredBody, limit, rawBody(LARGE)] as RouterMiddleware[];

  router.post<RawBodyState>(`${API}/validate`, ...(small as []), async (ctx) => {
    ctx.body = await answers.validate(ctx.state.bytes);
  });

  const located = [requireSession, callerLeft, declaredBody, smallJson] as RouterMiddleware[];
  router.post<SmallJsonState & CallerState>(`${API}/token`, ...(located as []), async (ctx) => {
    ctx.body = await answers.token(ctx.state.body, ctx.state.left);
  });

  router.post<RawBodyState & CallerState>(`${API}/verify`, ...(large as []), async (ctx) => {
    ctx.body = await answers.verify(ctx.state.bytes, ctx.state.left);
  });

  router.get(`${API}/documents/:tokenId/progress`, requireSession, async (ctx) => {
    const { tokenId = '' } = ctx.params;
    const progress = await answers.progress(tokenIdIn(tokenId));
    if (progress === undefined) throw documentUnknown();
    ctx.body = progress;
  });

  router.get<QueryState<z.output<typeof DELIVERIES_QUERY>>>(
    `${API}/deliveries`,
    requireSession,
    checkQuery(DELIVERIES_QUERY) as RouterMiddleware<QueryState<z.output<typeof DELIVERIES_QUERY>>>,
    async (ctx) => {
      const { state, subscription, limit: most } = ctx.state.query;
      ctx.body = await answers.deliveries({ state, subscription, limit: most });
    },
  );

  router.get(`${API}/events/:id`, requireSession, async (ctx) => {
    const { id = '' } = ctx.params;
    const details = await answers.event(id);
    if (details === undefined) throw new HttpError(404, 'CONSOLE_EVENT_UNKNOWN', EVENT_UNKNOWN);
    ctx.body = details;
  });
}
