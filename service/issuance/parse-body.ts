import { scan } from '@hapi/bourne';
import { RequestError } from '../base/errors';
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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The characters that precede a value: the start of a list or an object, or a comma. */
const OPENERS = new Set(Buffer.from('[{,'));

/**
 * An upper bound for the number of values in a JSON text, without parsing it. The memory that parsing takes
 * depends on that number, not only on the length of the text. Characters inside strings are skipped.
 */
export function countValues(json: Uint8Array): number {
  const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0;
    if (byte === QUOTE) at = endOfString(text, at);
    else if (OPENERS.has(byte)) values += 1;
  }
  return values;
}

/**
 * Index of the quote that ends the string starting at `start`: the first with an even number of backslashes
 * before it.
 */
function endOfString(text: Buffer, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let before = end - 1;
    while (text[before] === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
