import type { Middleware } from 'koa';
import { BusyError } from '../../base/errors';
import type { AcceptedState } from '../middleware/accept-document';
import type { BodyLimitsState } from '../middleware/limit-bodies';
import type { CallerState } from '../middleware/caller-left';
import type { IdempotencyKeyState } from '../middleware/idempotency-key';
import type { JsonBodyState } from '../middleware/json-body';
import type { AccessState, RequestState } from '../middleware/request-log';
import { sendIssued } from '../send-issued';

/** State that the middleware before the route sets. */
type CreateState = RequestState &
  CallerState &
  AcceptedState &
  JsonBodyState &
  BodyLimitsState &
  IdempotencyKeyState;

/** Seconds after which to ask for a document that is being minted. */
const ASK_AGAIN_S = '1';
/** Documents whose callers did not wait, and that are not mined yet. Each is kept in memory. */
const MOST_UNMINED = 1_000;
const RETRY_AFTER_MS = 10_000;

/**
 * POST /create/{documentId}. With `Prefer: respond-async` (RFC 7240, section 4.1) it answers 202 as soon as
 * the document is in the journal.
 *
 * @param hasDocuments whether GET /documents/{tokenId} exists for the caller.
 */
export function createDocument(hasDocuments: (state: AccessState) => boolean): Middleware<CreateState> {
  let unmined = 0;
  return async (ctx) => {
    const isAsync = hasDocuments(ctx.state) && prefersAsync(ctx.get('Prefer'));
    if (isAsync && unmined >= MOST_UNMINED)
      throw new BusyError('Too many documents wait to be mined: send it again later.', RETRY_AFTER_MS);
    const { log, accepted, body, requestHash, idempotencyKey: key, leave, left } = ctx.state;
    const kept = await accepted.issue({
      body,
      request: key === undefined ? undefined : { key, requestHash },
      stored: leave,
      left,
    });
    const { credentialId: id, tokenId } = kept;
    if (isAsync) {
      unmined++;
      const issued = (txHash: string): void => log.info({ id, tokenId, txHash }, 'document issued');
      // The mint queue logs a failure.
      void kept.mint.then(issued, () => undefined).finally(() => unmined--);
      left.throwIfAborted();
      ctx.set({
        Location: `/documents/${tokenId}`,
        'Preference-Applied': 'respond-async',
        'Retry-After': ASK_AGAIN_S,
      });
      ctx.status = 202;
      ctx.body = { tokenId };
      return;
    }
    const { txHash, document } = await kept.minted().catch((error: unknown) => {
      // The mint may go on, and a caller without an Idempotency-Key has nothing else to find it by.
      ctx.set('X-Token-Id', tokenId);
      throw error;
    });
    log.info({ id, tokenId, txHash }, 'document issued');
    // After the caller has left, no answer can be sent.
    left.throwIfAborted();
    sendIssued(ctx, document, txHash);
  };
}

/** Whether the header has the preference. Node.js joins repeated headers with a comma. */
function prefersAsync(header: string): boolean {
  return header.split(',').some((preference) => /^\s*respond-async\s*(;.*)?$/i.test(preference));
}
