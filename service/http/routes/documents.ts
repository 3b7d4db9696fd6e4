import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { BusyError, messageOf, RequestError } from '../../base/errors';
import { type Time, timeAt } from '../../base/time';
import { DOCUMENTS, IDEMPOTENCY_KEY } from '../description/documents';
import { limitBodies, type BodyLimitsOptions, type LimitCaller } from '../limits';
import { linkNextPage, type OperationRouter } from '../operation-router';
import {
  arrived,
  checkDeclaredBody,
  LIMIT_BYTES,
  mostBytes,
  readBody,
  SMALL_BYTES,
  type LeastRate,
} from '../read-body';
import { parseCreateRequest } from '../../issuance/create-request';
import type { Issuing } from '../../issuance/issue-document';
import { traceRequest } from '../request-log';
import type { DocumentBytes, Issuance } from '../../journal/issuance';
import type { Journal } from '../../journal/journal';
import { parseTokenId, tokenIdHexOf } from '../../registry/token-id-forms';

/** The parts of the paths of documents. */
export interface DocumentParts {
  apiKey: string | undefined;
  issuing: Issuing;
  /** The documents of GET /documents and GET /documents/{tokenId}, which exist only with an API key. */
  issuedDocuments?: Pick<Journal, 'find' | 'documentOf' | 'list'> | undefined;
  bodyLimits?: BodyLimitsOptions;
}

/** Seconds after which to ask for a document that is being minted. */
const ASK_AGAIN_S = '1';
/** Documents whose callers did not wait, and that are not mined yet. Each is kept in memory. */
const MOST_UNMINED = 1_000;
const RETRY_AFTER_MS = 10_000;

/** Answers the operations of documents. */
export function answerDocuments(
  { time, answer }: OperationRouter,
  parts: DocumentParts,
  limitCaller: LimitCaller,
): void {
  const { apiKey, issuing, issuedDocuments, bodyLimits = {} } = parts;
  let unmined = 0;

  const permitBody = limitBodies(time, bodyLimits);
  answer(DOCUMENTS.createDocument, async (ctx) => {
    const trace = traceRequest(ctx, DOCUMENTS.createDocument.path);
    const { log, left, session, receivedAt } = ctx.state;
    // This error comes before any other error in the request, and before the body is read.
    const documentType = issuing.acceptedType(ctx.params.documentId ?? '');
    limitCaller(ctx);
    const key = idempotencyKeyOf(ctx);
    checkDeclaredBody(ctx);
    const leave = await permitBody(ctx);
    try {
      const { body, requestHash } = await createBody(time, ctx, documentType, bodyLimits.least);
      // A request that was accepted before gets its answer, whatever is refused by now.
      if (key === undefined && mostBytes(ctx) <= SMALL_BYTES) parseCreateRequest(body);
      // GET /documents/{tokenId} has to exist for the caller.
      const hasDocuments = issuedDocuments !== undefined && (apiKey ?? session) !== undefined;
      const isAsync = hasDocuments && prefersAsync(ctx.get('Prefer'));
      if (isAsync && unmined >= MOST_UNMINED)
        throw new BusyError('Too many documents wait to be mined: send it again later.', RETRY_AFTER_MS);
      const kept = await issuing.issue({
        documentType,
        body,
        idempotent: key === undefined ? undefined : { key, requestHash },
        isMintAwaited: !isAsync,
        origin: { trace, receivedAt },
        stored: leave,
        left,
      });
      const { credentialId: id, tokenId } = kept;
      const issued = (txHash: string): void => log.info({ id, tokenId, txHash }, 'document issued');
      if (isAsync) {
        unmined++;
        // The mint queue logs a failure.
        void kept.mint.then(issued, () => undefined).finally(() => unmined--);
        left.throwIfAborted();
        ctx.set({ Location: `/documents/${tokenId}`, 'Preference-Applied': 'respond-async' });
        ctx.set('Retry-After', ASK_AGAIN_S);
        ctx.status = 202;
        ctx.body = { tokenId };
        return;
      }
      const { txHash, document } = await kept.minted().catch((error: unknown) => {
        // The mint may go on, and a caller without an Idempotency-Key has nothing else to find it by.
        ctx.set('X-Token-Id', tokenId);
        throw error;
      });
      issued(txHash);
      // After the caller has left, no answer can be sent.
      left.throwIfAborted();
      sendIssued(ctx, document, txHash);
    } finally {
      leave();
    }
  });

  // Documents are confidential, so these paths do not exist without an API key, except for the console.
  if (issuedDocuments === undefined) return;

  // For a caller that lost an answer and sent no Idempotency-Key.
  answer(DOCUMENTS.listDocuments, async (ctx) => {
    const page = await issuedDocuments.list(ctx.state.query);
    if (page.next) linkNextPage(ctx, page.next);
    ctx.body = page.issuances.map(shown);
  });

  // The answer of POST /create again, for a caller whose connection broke before it arrived.
  answer(DOCUMENTS.getDocument, async (ctx) => {
    const tokenId = tokenIdIn(ctx.params.tokenId ?? '');
    const issuance = await issuedDocuments.find(tokenId);
    const document = issuance && (await issuedDocuments.documentOf(tokenId));
    if (issuance === undefined || document === undefined) throw documentUnknown();
    const { state, txHash, failure } = issuance;
    if (state === 'failed') {
      const { code, message } = failure ?? { code: 'INTERNAL' as const, message: 'no reason is known' };
      const reason = `The token of this document was not made: ${message} [${code}]`;
      throw new RequestError(code, reason, { status: 410 });
    }
    if (txHash === undefined || (state !== 'mined' && state !== 'final')) {
      ctx.set('Retry-After', ASK_AGAIN_S);
      ctx.status = 202;
      ctx.body = { status: state };
      return;
    }
    // `mined` while a reorganisation may still remove the mint.
    ctx.set('X-Document-State', state);
    sendIssued(ctx, document, txHash);
  });
}

/**
 * Reads the body of POST /create. The thread that signs it checks its shape, because parsing 40 MB would
 * block all other requests for 100 ms. The shape of a small body is checked before it waits for anything.
 *
 * The thread parses a small body again. Passing on the parsed value would cost more: parsing 1 KB takes 13 µs
 * and cloning its value 37 µs. A value takes up to 20 times the memory of its bytes while it waits for a
 * thread, and V8 cannot clone a deeply nested one.
 *
 * @returns `requestHash`: SHA-256 in hex of the document type, a line feed and the body. Repetitions of a
 *   request have the same hash.
 */
export async function createBody(
  time: Time,
  ctx: Context,
  documentType: string,
  least?: LeastRate,
): Promise<{ body: Uint8Array<ArrayBuffer>; requestHash: string }> {
  const hash = createHash('sha256').update(`${documentType}\n`);
  const reading = readBody(ctx.req, LIMIT_BYTES, (chunk) => hash.update(chunk));
  const body = await arrived(time, ctx, reading, least);
  return { body, requestHash: hash.digest('hex') };
}

/** Node.js joins repeated headers with a comma and a space; no valid key has a space. */
function idempotencyKeyOf({ req }: Context): string | undefined {
  const sent = req.headers['idempotency-key'];
  const key = Array.isArray(sent) ? sent.join(', ') : sent;
  if (key === undefined || IDEMPOTENCY_KEY.safeParse(key).success) return key;
  const message = 'The header Idempotency-Key must be 1 to 255 visible ASCII characters.';
  throw new RequestError('IDEMPOTENCY_KEY_INVALID', message);
}

/** Whether the header has the preference. Node.js joins repeated headers with a comma. */
function prefersAsync(header: string): boolean {
  return header.split(',').some((preference) => /^\s*respond-async\s*(;.*)?$/i.test(preference));
}

/** The token id in a path, as 64 digits. @throws RequestError TOKEN_ID_INVALID */
export function tokenIdIn(text: string): string {
  let problem = 'A token id has 64 hexadecimal digits, or is a decimal number.';
  try {
    const tokenId = parseTokenId(text);
    if (tokenId !== undefined) return tokenIdHexOf(tokenId);
  } catch (error) {
    problem = messageOf(error);
  }
  throw new RequestError('TOKEN_ID_INVALID', problem);
}

/** The error for a token id of no document. */
export function documentUnknown(): RequestError {
  const message = 'No document was issued here with this token id, or it was removed.';
  return new RequestError('DOCUMENT_UNKNOWN', message);
}

function shown({ tokenId, credentialId: id, blNumber, owner, holder, ...issuance }: Issuance): object {
  const { state, createdAt, txHash, failure } = issuance;
  return { tokenId, id, blNumber, owner, holder, state, createdAt: timeAt(createdAt), txHash, failure };
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
