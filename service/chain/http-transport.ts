import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { FetchResponse, makeError, type JsonRpcPayload } from 'ethers';
import { Agent, request, type Dispatcher } from 'undici';
import { codeOf } from '../base/errors';
import { secretMasker, secretPartsOf } from '../base/mask-secrets';
import { readBounded } from '../base/read-bounded';
import { createSemaphore, type Semaphore } from '../base/semaphore';
import { splitCredentials } from '../base/url-credentials';
import {
  AnswerTooLargeError,
  answersTo,
  LARGEST_ANSWER_BYTES,
  malformed,
  parseAnswer,
  type RpcAnswer,
} from './rpc-answer';

/** Sends JSON-RPC requests to one node over HTTP. */
export interface HttpTransport {
  /**
   * Sends one request.
   *
   * @returns the answers to its calls, in the same order.
   * @throws the errors of ethers TIMEOUT, and SERVER_ERROR for a status of 300 or more; ChainError
   *   ANSWER_MALFORMED and AnswerTooLargeError (both retryable); any error of the connection.
   */
  send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<RpcAnswer[]>;
  /** Ends the requests under way. */
  close(): void;
}

/** An answer of a status of 300 or more is a sentence or a page. */
const LARGEST_REFUSAL_BYTES = 64 * 1024;
/** At most this many answers that are larger than this are read at the same time, to limit memory. */
const LARGE_BYTES = 1_000_000;
const LARGE_AT_ONCE = 2;

/**
 * Creates the transport. ethers' own copies an answer for each chunk and decodes it byte by byte, which took
 * 15 times as long for a range with 12,000 logs. It also has no limit of an answer's size, waits for ever for
 * an answer that arrives byte by byte, and leaves its connection open.
 *
 * @param timeoutMs covers the whole answer.
 * @param connections the most that are open at once; null: no limit.
 */
export function createHttpTransport(
  url: string,
  timeoutMs: number,
  connections: number | null = null,
): HttpTransport {
  const { url: bare, authorization } = splitCredentials(url);
  const mask = secretMasker(secretPartsOf(url));
  const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
  const dispatcher = new Agent({ connect: { timeout: timeoutMs }, connections });
  const turns = createSemaphore({ permits: LARGE_AT_ONCE, waiting: Infinity, waitMs: timeoutMs });

  async function post(body: string): Promise<{ status: number; body: Buffer | undefined }> {
    const late = AbortSignal.timeout(timeoutMs);
    try {
      const answer = await request(bare, { method: 'POST', headers, body, signal: late, dispatcher });
      const status = answer.statusCode;
      const most = status >= 300 ? LARGEST_REFUSAL_BYTES : LARGEST_ANSWER_BYTES;
      return { status, body: await readBounded(inTurn(decoded(answer), turns, late), most) };
    } catch (cause) {
      if (!late.aborted) throw cause;
      const message = `no answer within ${timeoutMs} ms`;
      const timeout: Error = makeError(message, 'TIMEOUT', { operation: 'request', reason: 'timeout' });
      throw timeout;
    }
  }

  return {
    async send(payload) {
      try {
        const { status, body } = await post(JSON.stringify(payload));
        if (status >= 300) throw serverError(status, mask(body?.toString('utf8') ?? ''));
        if (body === undefined) throw new AnswerTooLargeError();
        return answersTo(payload, parseAnswer(body));
      } catch (cause) {
        throw isUnreadable(cause) ? malformed([payload].flat()[0]?.method ?? '') : cause;
      }
    },
    close: () => void dispatcher.destroy(),
  };
}

/** Some proxies compress answers although nobody asked for it. */
function decoded({ headers, body }: Dispatcher.ResponseData): Readable {
  return headers['content-encoding'] === 'gzip' ? pipeline(body, createGunzip(), () => undefined) : body;
}

/** Passes a body on. After LARGE_BYTES it waits for its turn. */
async function* inTurn(body: Readable, turns: Semaphore, late: AbortSignal): AsyncGenerator<Buffer> {
  let bytes = 0;
  let turn: Awaited<ReturnType<Semaphore['acquire']>> | undefined;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > LARGE_BYTES) turn ??= await turns.acquire(late);
      yield chunk;
    }
  } finally {
    if (typeof turn === 'function') turn();
  }
}

/** Whether an answer is not JSON, or not gzip as it says. */
function isUnreadable(cause: unknown): boolean {
  return cause instanceof SyntaxError || codeOf(cause)?.startsWith('Z_') === true;
}

/**
 * Builds an error like ethers' own, without the URL, which may contain a key. `responseBody` is masked before
 * it is cut, so that no part of a secret remains.
 */
function serverError(status: number, responseBody: string): Error {
  const response = new FetchResponse(status, '', {}, Buffer.from(responseBody));
  const info = { responseBody: responseBody.slice(0, 1_000) };
  return makeError(`server response ${status}`, 'SERVER_ERROR', { request: '', response, info });
}
