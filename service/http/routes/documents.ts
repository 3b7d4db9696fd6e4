import { Readable } from 'node:stream';
import type { Middleware, Context } from 'koa';
import type { z } from 'zod';
import { BusyError, messageOf } from '../../base/errors';
import { IDEMPOTENCY_KEY, type DOCUMENTS_QUERY } from '../description/documents';
import type { CallerState, BodyLimitsState } from '../middleware/limits';
import { HttpError } from '../middleware/errors';
import type { AcceptedState, JsonBodyState } from '../middleware/json-body';
import type { AccessState, RequestState } from '../middleware/request-log';
import { noStore, linkNextPage, type QueryState } from '../query';
import type { AcceptDocument } from '../../issuance/issue-document';
import type { Issuance, DocumentBytes } from '../../journal/issuance';
import type { Journal } from '../../journal/journal';
import { parseTokenId, tokenIdHexOf } from '../../registry/token-id-forms';

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

/** The journal methods that read issued documents. */
export type IssuedDocuments = Pick<Journal, 'find' | 'documentOf' | 'list'>;

/**
 * GET /documents/{tokenId}: the answer to the request that issued the document, for a caller whose connection
 * broke before it arrived. The header X-Document-State is `mined` while a reorganisation may still remove the
 * mint, and `final` after that.
 */
export function issuedDocument(
  documents: IssuedDocuments,
): Middleware<object, { params: Record<string, string> }> {
  return async (ctx) => {
    noStore(ctx);
    const tokenId = tokenIdIn(ctx.params.tokenId ?? '');
    const issuance = await documents.find(tokenId);
    const document = issuance && (await documents.documentOf(tokenId));
    if (issuance === undefined || document === undefined) throw documentUnknown();
    const { state, txHash, failure } = issuance;
    if (state === 'failed') {
      const { code, message } = failure ?? { code: 'INTERNAL', message: 'no reason is known' };
      throw new HttpError(410, code, `The token of this document was not made: ${message} [${code}]`);
    }
    if (txHash === undefined || (state !== 'mined' && state !== 'final')) {
      ctx.set('Retry-After', ASK_AGAIN_S);
      ctx.status = 202;
      ctx.body = { status: state };
      return;
    }
    ctx.set('X-Document-State', state);
    sendIssued(ctx, document, txHash);
  };
}

/** The token id in a path, as 64 digits. @throws HttpError TOKEN_ID_INVALID */
export function tokenIdIn(text: string): string {
  const tokenId = parsed(text);
  if (tokenId !== undefined) return tokenIdHexOf(tokenId);
  throw new HttpError(
    400,
    'TOKEN_ID_INVALID',
    'A token id has 64 hexadecimal digits, or is a decimal number.',
  );
}

function parsed(text: string): bigint | undefined {
  try {
    return parseTokenId(text);
  } catch (error) {
    throw new HttpError(400, 'TOKEN_ID_INVALID', messageOf(error));
  }
}

/** The error for a token id of no document. */
export function documentUnknown(): HttpError {
  const message = 'No document was issued here with this token id, or it was removed.';
  return new HttpError(404, 'DOCUMENT_UNKNOWN', message);
}

/**
 * GET /documents: what was issued here, newest first, without the documents. For a caller that lost
 * an answer and sent no Idempotency-Key.
 */
export function listDocuments(
  documents: Pick<Journal, 'list'>,
): Middleware<QueryState<z.output<typeof DOCUMENTS_QUERY>>> {
  return async (ctx) => {
    noStore(ctx);
    const page = await documents.list(ctx.state.query);
    if (page.next) linkNextPage(ctx, `${page.next.position}.${page.next.tokenId}`);
    ctx.body = page.issuances.map(shown);
  };
}

function shown(issuance: Issuance): object {
  const { tokenId, credentialId, blNumber, beneficiary, holder, state, txHash, failure, createdAt } =
    issuance;
  return {
    tokenId,
    id: credentialId,
    ...(blNumber !== undefined && { blNumber }),
    owner: beneficiary,
    holder,
    state,
    createdAt: new Date(createdAt).toISOString(),
    ...(txHash !== undefined && { txHash }),
    ...(failure && { failure }),
  };
}

const HEAD = Buffer.from('{"signedW3CDocument":');

/**
 * Answers 200 with an issued document: `{"signedW3CDocument": …, "txHash": "0x…"}`, streamed without copying
 * or parsing the document, which is JSON already. Reading stops when the client disconnects. When reading
 * fails half-way, Koa cuts the connection, which is the only possible signal by then.
 */
function sendIssued(ctx: Context, { length, parts }: DocumentBytes, txHash: string): void {
  const tail = Buffer.from(`,"txHash":${JSON.stringify(txHash)}}`);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield HEAD;
    yield* parts;
    yield tail;
  }
  ctx.status = 200;
  ctx.type = 'application/json; charset=utf-8';
  if (ctx.method !== 'HEAD') ctx.body = Readable.from(chunks(), { objectMode: false });
  ctx.length = HEAD.length + length + tail.length;
}

/**
 * Checks first whether documents of this type are issued here. That error comes before any other error in the
 * request, and before the body is read.
 */
export function acceptDocument(
  accept: AcceptDocument,
): Middleware<AcceptedState, { params: Record<string, string> }> {
  return async (ctx, next) => {
    ctx.state.accepted = accept(ctx.params.documentId ?? '');
    await next();
  };
}

/** State that the middleware sets for the route. */
export interface IdempotencyKeyState {
  /** Undefined when the caller sent none. */
  idempotencyKey: string | undefined;
}

/**
 * Reads the caller's Idempotency-Key. Node.js joins repeated headers with a comma and a space; no valid key
 * has a space.
 */
export const idempotencyKey: Middleware<IdempotencyKeyState> = async (ctx, next) => {
  const sent = ctx.req.headers['idempotency-key'];
  const key = Array.isArray(sent) ? sent.join(', ') : sent;
  if (key !== undefined && !IDEMPOTENCY_KEY.safeParse(key).success) {
    const message = 'The header Idempotency-Key must be 1 to 255 visible ASCII characters.';
    throw new HttpError(400, 'IDEMPOTENCY_KEY_INVALID', message);
  }
  ctx.state.idempotencyKey = key;
  await next();
};
