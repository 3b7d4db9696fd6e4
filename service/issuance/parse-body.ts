import { scan } from '@hapi/bourne';
import { RequestError } from '../base/errors';
import { countValues } from './count-values';
import { isJsonObject, type JsonObject } from './credential';

/**
 * Five times the values of a Bill of Lading with a thousand packages. Signing and verifying compare each
 * statement with every other: a list of 20,000 takes a processor half a minute, and one of 250,000 would take
 * an hour.
 */
const MOST_VALUES = 20_000;

/**
 * Parses a request's body as a JSON object.
 *
 * @throws RequestError BODY_NOT_JSON for an empty body, invalid UTF-8 or JSON, a value that is not an object,
 *   and a key `__proto__` at any depth; BODY_TOO_COMPLEX for too many values.
 */
export function parseBody(body: Uint8Array): JsonObject {
  refuseComplex(body);
  return jsonObjectOf(parse(body));
}

/** Refuses a body with more values than any document has, without parsing it. */
export function refuseComplex(body: Uint8Array): void {
  if (countValues(body) <= MOST_VALUES) return;
  const remedy = 'Leave some out, or attach them as a file.';
  const message = `The body has more than ${MOST_VALUES} values. ${remedy}`;
  throw new RequestError('BODY_TOO_COMPLEX', message, { remedy });
}

/** Returns the parsed value if it is an object without a key `__proto__` at any depth. */
export function jsonObjectOf(value: unknown): JsonObject {
  if (!isJsonObject(value)) throw notJson();
  try {
    scan(value);
  } catch (cause) {
    throw notJson(': a key is "__proto__"', cause);
  }
  return value;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw notJson('', cause);
  }
}

export function notJson(detail = '', cause?: unknown): RequestError {
  return new RequestError('BODY_NOT_JSON', `The body is not a valid JSON object${detail}.`, { cause });
}
