import { scan } from '@hapi/bourne';
import { RequestError } from '../base/errors';
import { countValues } from './count-values';
import type { JsonObject } from './credential';

/**
 * Five times what a Bill of Lading with a thousand packages has. Whoever signs or verifies compares each
 * statement with each other: a list of 20,000 takes a processor half a minute, one of 250,000 would take it
 * an hour.
 */
const MOST_VALUES = 20_000;

/**
 * The JSON object that a request's body is.
 *
 * @throws RequestError BODY_NOT_JSON for anything else: no UTF-8, no JSON, nothing at all, a list, a text,
 *   and for a key `__proto__`, wherever it is; BODY_TOO_COMPLEX for more values than any document has.
 */
export function parseBody(body: Uint8Array): JsonObject {
  refuseComplex(body);
  return jsonObjectOf(parse(body));
}

/** Refuses more values than any document has, without parsing them. */
export function refuseComplex(body: Uint8Array): void {
  if (countValues(body) <= MOST_VALUES) return;
  const remedy = 'Leave some out, or attach them as a file.';
  const message = `The body has more than ${MOST_VALUES} values. ${remedy}`;
  throw new RequestError('BODY_TOO_COMPLEX', message, { remedy });
}

/** What was parsed, if it is an object without a key `__proto__` in it. */
export function jsonObjectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notJson();
  try {
    scan(value);
  } catch (cause) {
    throw notJson(': a key is "__proto__"', cause);
  }
  return value as JsonObject;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw notJson('', cause);
  }
}

/** The error for a body that is no JSON object. */
export function notJson(detail = '', cause?: unknown): RequestError {
  return new RequestError('BODY_NOT_JSON', `The body is not a valid JSON object${detail}.`, { cause });
}
