import { setTimeout as sleep } from 'node:timers/promises';
import { isError, type JsonRpcPayload } from 'ethers';
import { isRangeRefused } from './refusals';

const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 50;

/** Sent twice, this may end as an error although the first was taken: broadcast.ts tells what came of it. */
const NOT_IDEMPOTENT = new Set(['eth_sendRawTransaction']);

/**
 * Sends a request again when the connection failed or a gateway answered for the node: sockets that are kept
 * open are reset now and then, and whatever only asks may be asked again. The node's own answer, also one
 * that says no, is never asked for again, and neither is a request that took all of its time, or that asks
 * for too much or too often.
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
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
