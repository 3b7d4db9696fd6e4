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
  return realised(body, id, undefined);
}

/**
 * Checks the body of `PUT /subscriptions/{id}`. It replaces the stored subscription, except for the values of
 * headers that it masks or leaves out.
 *
 * @param stored with the values of its headers.
 * @throws RequestError SUBSCRIPTION_INVALID, with JSON pointer and remedy in the message.
 */
export function parseReplacement(body: unknown, stored: Subscription): Subscription {
  return realised(withoutHealth(body), stored.id, stored);
}

/** The body without `failingSince`, which a GET adds: the answer of a GET can be sent as it is. */
function withoutHealth(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'failingSince'));
}

function realised(body: unknown, id: string, stored: Subscription | undefined): Subscription {
  const { data, error } = SUBSCRIPTION_REQUEST.safeParse(body);
  if (data === undefined) {
    const { path, problem } = firstProblemOf(error);
    throw subscriptionError(path, problem);
  }
  const { source, types, filters, sink, protocol, protocolsettings, config } = data;
  if (config.state === 'gone' && stored?.config.state !== 'gone') {
    const problem = 'is set to `gone` by the service, when the sink answers 410. Write `active` or `paused`.';
    throw subscriptionError(['config', 'state'], problem);
  }
  const retracted = types?.indexOf(RETRACTED_TYPE) ?? -1;
  if (retracted >= 0 && !config.retractions) {
    const problem = 'is sent only if config/retractions is true. Set it, or leave the type out.';
    throw subscriptionError(['types', retracted], problem);
  }
  const headers = mergeHeaders(stored, protocolsettings.headers ?? {});
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

/**
 * The headers of a new subscription, or after a PUT. A header that is not named, or is named with its mask,
 * keeps its value, unless that cannot be decrypted: the stored subscription then has the mask itself.
 */
function mergeHeaders(stored: Subscription | undefined, put: ChangedHeaders): Headers {
  const merged = new Map(Object.entries(stored?.protocolsettings?.headers ?? {}));
  const refuse = (problem: string, ...name: string[]): never => {
    throw subscriptionError([...HEADERS_PATH, ...name], problem);
  };
  for (const [name, value] of Object.entries(put)) {
    if (value === null && stored === undefined) refuse(NOTHING_TO_REMOVE, name);
    else if (value === null) merged.delete(name);
    else if (value !== MASK) merged.set(name, value);
    else if (!merged.has(name)) refuse(`is ${MASK}, which stands for a stored value. Give the value.`, name);
  }
  if (merged.size > MOST_HEADERS) refuse(`has more than ${MOST_HEADERS} headers. Leave some out.`);
  for (const [name, value] of merged)
    if (value === MASK)
      refuse('cannot be kept: its value cannot be read with SECRETS_KEY. Give the value, or null.', name);
  return Object.fromEntries(merged);
}

/** @param problem with the remedy; the pointer is the subject of its first sentence. */
function subscriptionError(path: Path, problem: string): RequestError {
  return new RequestError('SUBSCRIPTION_INVALID', `${pointerOf(path) || 'The body'} ${problem}`);
}
