import { RequestError } from '../base/errors';
import { pointerOf, type Path, firstProblemOf } from '../base/json';
import { MOST_HEADERS, NOTHING_TO_REMOVE } from '../base/delivery-options';
import { registryName } from '../base/registry-name';
import { sourceOf } from '../events/cloud-event';
import { RETRACTED_TYPE } from '../events/event-types';
import { MASK } from './present-subscription';
import { SUBSCRIPTION_REQUEST, type Headers, type Subscription } from './subscription';

/** The headers of a request, by name in lower case. Null removes one. */
type ChangedHeaders = Readonly<Record<string, string | null>>;

const HEADERS_PATH = ['protocolsettings', 'headers'];

/**
 * Checks the body of `POST /subscriptions` and fills the defaults in. An `id` in the body is ignored.
 *
 * @param body from a parser that refuses `__proto__` as a name.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseSubscription(body: unknown, id: string): Subscription {
  return realised(body, id, newHeaders, undefined);
}

/**
 * Checks the body of `PUT /subscriptions/{id}`. It replaces the stored subscription, except for the values of
 * headers that it masks or leaves out.
 *
 * @param stored with the values of its headers.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseReplacement(body: unknown, stored: Subscription): Subscription {
  const merge = (put: ChangedHeaders): Headers => mergeHeaders(stored.protocolsettings?.headers ?? {}, put);
  return realised(withoutHealth(body), stored.id, merge, stored.config.state);
}

/** The body without `failingSince`, which a GET adds: the answer of a GET can be sent as it is. */
function withoutHealth(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'failingSince'));
}

function realised(
  body: unknown,
  id: string,
  headersOf: (given: ChangedHeaders) => Headers,
  storedState: string | undefined,
): Subscription {
  const { data, error } = SUBSCRIPTION_REQUEST.safeParse(body);
  if (data === undefined) {
    const { path, problem } = firstProblemOf(error);
    throw subscriptionError(path, problem);
  }
  const { source, types, filters, sink, protocol, protocolsettings, config } = data;
  if (config.state === 'gone' && storedState !== 'gone') {
    const problem = 'is set to `gone` by the service, when the sink answers 410. Write `active` or `paused`.';
    throw subscriptionError(['config', 'state'], problem);
  }
  const retracted = types?.indexOf(RETRACTED_TYPE) ?? -1;
  if (retracted >= 0 && !config.retractions) {
    const problem = 'is sent only if config/retractions is true. Set it, or leave the type out.';
    throw subscriptionError(['types', retracted], problem);
  }
  const headers = headersOf(protocolsettings.headers ?? {});
  return {
    id,
    ...(source !== undefined && { source: asInEvents(source) }),
    ...(types !== undefined && { types }),
    config,
    ...(filters !== undefined && { filters }),
    sink,
    protocol,
    protocolsettings: {
      ...(Object.keys(headers).length > 0 && { headers }),
      method: protocolsettings.method,
    },
  };
}

/** A source with its address in lower case. */
function asInEvents(source: string): string {
  const [chainId = '', address = ''] = source.split(':').slice(2);
  return sourceOf(registryName(Number(chainId), address));
}

/** The headers of a new subscription. */
function newHeaders(given: ChangedHeaders): Headers {
  const removed = Object.keys(given).find((name) => given[name] === null);
  if (removed !== undefined) throw subscriptionError([...HEADERS_PATH, removed], NOTHING_TO_REMOVE);
  return mergeHeaders({}, given);
}

/** The headers after a PUT. A header that is not named, or is named with its mask, keeps its value. */
function mergeHeaders(stored: Headers, put: ChangedHeaders): Headers {
  const merged = new Map(Object.entries(stored));
  for (const [name, value] of Object.entries(put)) {
    if (value === null) merged.delete(name);
    else if (value !== MASK) merged.set(name, value);
    else if (!merged.has(name)) {
      const problem = `is ${MASK}, which stands for a stored value. Give the value.`;
      throw subscriptionError([...HEADERS_PATH, name], problem);
    }
  }
  if (merged.size > MOST_HEADERS)
    throw subscriptionError(HEADERS_PATH, `has more than ${MOST_HEADERS} headers. Leave some out.`);
  return Object.fromEntries(merged);
}

/** Refuses to keep a value that cannot be decrypted. The headers have the mask instead of it. */
export function refuseUnreadable({ protocolsettings }: Subscription): void {
  const unreadable = Object.entries(protocolsettings?.headers ?? {}).find(([, value]) => value === MASK);
  if (unreadable === undefined) return;
  const problem = 'cannot be kept: its value cannot be read with SECRETS_KEY. Give the value, or null.';
  throw subscriptionError([...HEADERS_PATH, unreadable[0]], problem);
}

/** @param problem with the remedy; the pointer is the subject of its first sentence. */
function subscriptionError(path: Path, problem: string): RequestError {
  return new RequestError('SUBSCRIPTION_INVALID', `${pointerOf(path) || 'The body'} ${problem}`);
}
