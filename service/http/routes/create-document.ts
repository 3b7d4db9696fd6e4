import type { Middleware } from 'koa';
import type { AcceptedState } from '../middleware/accept-document';
import type { BodyLimitsState } from '../middleware/limit-bodies';
import type { CallerState } from '../middleware/caller-left';
import type { IdempotencyKeyState } from '../middleware/idempotency-key';
import type { JsonBodyState } from '../middleware/json-body';
import type { RequestState } from '../middleware/request-log';
import { sendIssued } from '../send-issued';

/** State that the middleware before the route sets. */
export type CreateState = RequestState &
  CallerState &
  AcceptedState &
  JsonBodyState &
  BodyLimitsState &
  IdempotencyKeyState;

/** POST /create/{documentId}. */
export const createDocument: Middleware<CreateState> = async (ctx) => {
  const { log, accepted, body, requestHash, idempotencyKey: key, leave, left } = ctx.state;
  const issued = await accepted.issue({
    body,
    request: key === undefined ? undefined : { key, requestHash },
    stored: leave,
    left,
  });
  const { credentialId, tokenId, txHash, document } = issued;
  log.info({ id: credentialId, tokenId, txHash }, 'document issued');
  // After the caller has left, no answer can be sent.
  left.throwIfAborted();
  sendIssued(ctx, document, txHash);
};
