import { scan } from '@hapi/bourne';
import { RequestError } from '../base/errors';
import { kindOf, parseJson, scanJson } from '../base/json';
import { isJsonObject, type JsonObject } from './credential';

/**
 * Five times the values of a Bill of Lading with a thousand packages. Signing and verifying compare each
 * statement with every other: a list of 20,000 takes a processor half a minute, and one of 250,000 would take
 * an hour.
 */
const MOST_VALUES = 20_000;
/** A credential has the values of its subject, and some of its own: it can be checked if it was issued. */
export const MOST_CHECKED_VALUES = MOST_VALUES + 100;

/**
 * Parses a request's body as a JSON object.
 *
 * @throws RequestError BODY_NOT_JSON for an empty body, invalid UTF-8 or JSON, a value that is not an object,
 *   and a key `__proto__` at any depth; BODY_TOO_COMPLEX for too many values; BODY_AMBIGUOUS for a name that
 *   an object has twice.
 */
export function parseBody(body: Uint8Array, mostValues = MOST_VALUES): JsonObject {
  return checkedBody(body, () => jsonObjectOf(parseJson(body, notJson)), mostValues);
}

/**
 * Returns the value of a body that has no more values than any document has, and no name twice in an object.
 *
 * @param parseIt parses the body. It runs after the values were counted.
 * @throws RequestError BODY_TOO_COMPLEX, BODY_AMBIGUOUS.
 */
export function checkedBody<T>(body: Uint8Array, parseIt: () => T, mostValues = MOST_VALUES): T {
  const { values, repeated } = scanJson(body, { mostValues });
  if (values > mostValues) {
    const remedy = 'Leave some out, or attach them as a file.';
    const message = `The body has more than ${mostValues} values. ${remedy}`;
    throw new RequestError('BODY_TOO_COMPLEX', message, { remedy });
  }
  const parsed = parseIt();
  if (repeated === undefined) return parsed;
  const remedy = 'Keep one of them: programs disagree about which one counts.';
  throw new RequestError('BODY_AMBIGUOUS', `${repeated} occurs twice in its object. ${remedy}`, { remedy });
}

/** Returns the parsed value if it is an object without a key `__proto__` at any depth. */
export function jsonObjectOf(value: unknown): JsonObject {
  if (!isJsonObject(value)) throw notJson(`it is ${kindOf(value)}`);
  try {
    scan(value);
  } catch (cause) {
    throw notJson('a key is "__proto__"', cause);
  }
  return value;
}

function notJson(problem: string, cause?: unknown): RequestError {
  return new RequestError('BODY_NOT_JSON', `The body is not a valid JSON object: ${problem}.`, { cause });
}
