import { HEADER_NAME, HEADER_VALUE, OWN_HEADERS } from '../base/delivery-rules';
import { found } from '../base/json';
import { LONGEST_HEADER_NAME, LONGEST_HEADER_VALUE, MOST_HEADERS } from './bounds';
import type { Headers, Subscription } from './subscription';
import { membersOf, subscriptionError } from './subscription-error';

/** Replaces the value of every header in the answers of the API. */
export const MASK = '***';

/** The headers of a request, by name in lower case. Null removes one. */
export type GivenHeaders = Readonly<Record<string, string | null>>;

const PATH = ['protocolsettings', 'headers'];

/** With `standardWebhooks` each attempt sets these. */
const STANDARD_WEBHOOKS_HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
const SET_BY_SERVICE = new Set([...OWN_HEADERS, ...STANDARD_WEBHOOKS_HEADERS]);

/**
 * Checks names and values. An error shows neither a value nor a wrong name: the name may be a whole header
 * with its key.
 *
 * @throws RequestError SUBSCRIPTION_INVALID
 */
export function checkHeaders(given: unknown): GivenHeaders {
  const members = membersOf(given, PATH, 'Give the names of headers and their values.');
  const checked = new Map<string, string | null>();
  for (const [index, [written, value]] of members.entries()) {
    const name = nameOf(written, index);
    if (checked.has(name)) {
      const problem = 'is there twice: the case of letters makes no difference. Leave one out.';
      throw subscriptionError([...PATH, written], problem);
    }
    checked.set(name, valueOf(value, [...PATH, written]));
  }
  return Object.fromEntries(checked);
}

/** The headers of a new subscription. @throws RequestError SUBSCRIPTION_INVALID if a value is missing. */
export function newHeaders(given: GivenHeaders): Headers {
  const removed = Object.keys(given).find((name) => given[name] === null);
  if (removed !== undefined)
    throw subscriptionError([...PATH, removed], 'is null, and there is no header to remove. Leave it out.');
  return mergeHeaders({}, given);
}

/**
 * The headers after a PUT. A header that is not named, or is named with its mask, keeps its value.
 *
 * @throws RequestError SUBSCRIPTION_INVALID for a mask without a stored value, and for too many headers.
 */
export function mergeHeaders(stored: Headers, put: GivenHeaders): Headers {
  const merged = new Map(Object.entries(stored));
  for (const [name, value] of Object.entries(put)) {
    if (value === null) merged.delete(name);
    else if (value !== MASK) merged.set(name, value);
    else if (!merged.has(name))
      throw subscriptionError(
        [...PATH, name],
        `is ${MASK}, which stands for a stored value. Give the value.`,
      );
  }
  if (merged.size > MOST_HEADERS)
    throw subscriptionError(PATH, `has more than ${MOST_HEADERS} headers. Leave some out.`);
  return Object.fromEntries(merged);
}

/** Refuses to keep a value that cannot be decrypted. The headers have the mask instead of it. */
export function refuseUnreadable({ protocolsettings }: Subscription): void {
  const unreadable = Object.entries(protocolsettings?.headers ?? {}).find(([, value]) => value === MASK);
  if (unreadable === undefined) return;
  const problem = 'cannot be kept: its value cannot be read with SECRETS_KEY. Give the value, or null.';
  throw subscriptionError([...PATH, unreadable[0]], problem);
}

function nameOf(written: string, index: number): string {
  if (written.length > LONGEST_HEADER_NAME)
    throw subscriptionError(
      PATH,
      `has a name of more than ${LONGEST_HEADER_NAME} characters: header ${index + 1}. Shorten it.`,
    );
  if (!HEADER_NAME.test(written))
    throw subscriptionError(PATH, `has a name that is not a header name: header ${index + 1}. Correct it.`);
  const name = written.toLowerCase();
  if (SET_BY_SERVICE.has(name))
    throw subscriptionError([...PATH, written], 'is set by the service itself. Leave it out.');
  return name;
}

function valueOf(value: unknown, path: readonly string[]): string | null {
  if (value === null) return value;
  if (typeof value !== 'string')
    throw subscriptionError(path, `must be a string, ${found(value)}. Write it in double quotes.`);
  if (value.length > LONGEST_HEADER_VALUE)
    throw subscriptionError(path, `has more than ${LONGEST_HEADER_VALUE} characters. Shorten it.`);
  if (!HEADER_VALUE.test(value))
    throw subscriptionError(path, 'is not a header value. Use printable ASCII characters only.');
  return value;
}
