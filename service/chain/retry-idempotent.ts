import { setTimeout as sleep } from 'node:timers/promises';
import { isError, type JsonRpcPayload } from 'ethers';
import { codeOf } from '../base/errors';
import { isRangeRefused } from './refusals';

const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 50;

/** A repeated send may fail although the first one was accepted. broadcast.ts handles that case. */
const NOT_IDEMPOTENT = new Set(['eth_sendRawTransaction']);

/**
 * Repeats a request when the connection failed or a gateway answered for the node. Open sockets are reset now
 * and then, and a request that only reads can be repeated. An answer of the node itself, even an error, is
 * final. A request that timed out, asked for too much or was throttled is not repeated either.
 */
export async function retryIdempotent<T>(
  payload: JsonRpcPayload | JsonRpcPayload[],
  send: () => Promise<T>,
): Promise<T> {
  const methods = (Array.isArray(payload) ? payload : [payload]).map(({ method }) => method);
  const attempts = methods.some((method) => NOT_IDEMPOTENT.has(method)) ? 1 : ATTEMPTS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (cause) {
      if (attempt === attempts || isError(cause, 'TIMEOUT') || isRangeRefused(cause)) throw cause;
      // The calls of a batch are repeated one by one.
      if (Array.isArray(payload) && codeOf(cause) === 'ANSWER_MALFORMED') throw cause;
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
