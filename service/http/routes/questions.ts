import type { Context } from 'koa';
import { RequestError } from '../../base/errors';
import type { Answers } from '../../answers/answers';
import { percentDecoded } from '../../base/mask-secrets';
import type { Overview } from '../../console/views';
import { DELIVERIES } from '../description/deliveries';
import { CREDENTIALS, TOKENS } from '../description/tokens';
import { limitBodies } from '../limits';
import { arrived, checkDeclaredBody, CHECKED_BYTES, readBody } from '../read-body';
import type { RequestState } from '../request-log';
import { linkNextPage, sendJson, type OperationRouter } from '../operation-router';
import { tokenIdIn } from './documents';

/**
 * Documents that are kept for a check at once: one is checked, while others may wait for slow hosts. Those
 * that are issued have permits of their own.
 */
const CHECKED = { large: { permits: 4, waiting: 20 } };

/**
 * The bodies of checks, and the ids of credentials, are neither logged nor stored.
 *
 * @param overview that of the console, if there is one.
 */
export function answerQuestions(
  { time, answer }: OperationRouter,
  answers: Answers,
  overview?: () => Promise<Pick<Overview, 'revision'>>,
): void {
  answer(TOKENS.getToken, async (ctx) => {
    const { role, holder, left, query } = ctx.state;
    const token = await answers.token(
      {
        ...query,
        tokenId: BigInt(`0x${tokenIdIn(ctx.params.tokenId ?? '')}`),
        credentialId: percentDecoded(ctx.get('X-Credential-Id')) || undefined,
        seesDeliveries: role !== 'issuer',
        holder,
      },
      left,
    );
    if (token === undefined) throw tokenUnknown();
    ctx.body = token;
  });

  answer(TOKENS.getEvidence, async (ctx) => {
    const { holder, left, query } = ctx.state;
    const tokenId = BigInt(`0x${tokenIdIn(ctx.params.tokenId ?? '')}`);
    const evidence = await answers.evidence({ ...query, tokenId, holder }, left);
    if (evidence === undefined) throw tokenUnknown();
    ctx.attachment('evidence.json');
    sendJson(ctx, evidence);
  });

  const once = onceForPages(overview);
  answer(DELIVERIES.findDeliveries, (ctx) =>
    once(ctx, async () => {
      const { token: tokenId, event: eventId, state, ...query } = ctx.state.query;
      const states = state && [state];
      const wanted = { ...query, tokenId, eventId, states };
      const { deliveries, next } = await answers.deliveries(wanted, ctx.state.holder);
      if (next) linkNextPage(ctx, next);
      ctx.body = deliveries;
    }),
  );

  answer(DELIVERIES.listEvents, async (ctx) => {
    const { token: tokenId, after, limit } = ctx.state.query;
    const { events, next } = await answers.events({ tokenId, from: after, limit }, ctx.state.holder);
    if (next !== undefined) linkNextPage(ctx, next);
    ctx.body = events;
  });

  answer(DELIVERIES.getEvent, async (ctx) => {
    const event = await answers.event(ctx.params.id ?? '', ctx.state.holder);
    if (event === undefined)
      throw new RequestError('EVENT_UNKNOWN', 'There is no event with this id, or it was removed.');
    ctx.body = event;
  });

  const permitBody = limitBodies(time, CHECKED);
  /** Answers with the result of a check of the body. */
  const sendChecked = async (
    ctx: Context & { state: RequestState },
    check: Answers['verify'],
  ): Promise<void> => {
    checkDeclaredBody(ctx, CHECKED_BYTES);
    const leave = await permitBody(ctx);
    try {
      const bytes = await arrived(time, ctx, readBody(ctx.req, CHECKED_BYTES));
      sendJson(ctx, await check(bytes, ctx.state.left));
    } finally {
      leave();
    }
  };
  answer(CREDENTIALS.verifyCredential, (ctx) => sendChecked(ctx, answers.verify));
  answer(CREDENTIALS.deriveCredential, async (ctx) => {
    await sendChecked(ctx, answers.derive);
    ctx.status = 201;
  });
}

function tokenUnknown(): RequestError {
  const message = 'The registry has no token with this id. Check the registry and the chain, too.';
  return new RequestError('TOKEN_UNKNOWN', message);
}

/** Distinct questions of a revision. Pages ask one or two. */
const MOST_QUESTIONS = 100;

/**
 * Answers a question of the console's pages once for each revision of the overview: all pages ask again when
 * it changes. The overview precedes the answer, which therefore shows what changed the revision.
 */
function onceForPages(overview?: () => Promise<Pick<Overview, 'revision'>>) {
  let known = { revision: '', answers: new Map<string, Promise<{ json: string; link: string }>>() };
  return async (ctx: Context & { state: RequestState }, answer: () => Promise<void>): Promise<void> => {
    // Each holder sees another part.
    if (overview === undefined || ctx.state.session === undefined || ctx.state.holder) return answer();
    ctx.state.isRoutine = true;
    const { revision } = await overview();
    if (known.revision !== revision || known.answers.size >= MOST_QUESTIONS)
      known = { revision, answers: new Map() };
    const { answers } = known;
    const answered =
      answers.get(ctx.url) ??
      answer().then(() => ({ json: JSON.stringify(ctx.body), link: ctx.response.get('Link') }));
    answers.set(ctx.url, answered);
    answered.catch(() => answers.delete(ctx.url));
    const { json, link } = await answered;
    if (link) ctx.set('Link', link);
    ctx.type = 'json';
    ctx.body = json;
  };
}
