import createFetchClient, { type Client } from 'openapi-fetch';
import { fetchPages, type FetchOptions } from '../receiver/fetch-events';
import { KEYS_OF_PATH, type operations, type paths } from './api-types';
import { keysOf, knownEvent, type KeySource } from './deliveries';
import type { ServiceEvent } from './events';

/** The types of requests and answers, by path and by component. */
export type { components, paths } from './api-types';
export { FetchError } from '../receiver/fetch-events';

/** A service, and the keys that requests to it carry. */
export interface ClientOptions {
  /** Address of the service, such as `https://carrier.example`. */
  url: string;
  /** API_KEY of the service, sent with the requests that it opens, unless `key` opens them too. */
  apiKey?: string | undefined;
  /** A key with a scope, `tdk_…`, or ADMIN_API_KEY: sent with the requests that ADMIN_API_KEY opens. */
  key?: string | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** Options of `client.events`; those besides these select events as the query of `GET /events/stream`. */
export interface EventsOptions
  extends
    Omit<NonNullable<operations['streamEvents']['parameters']['query']>, 'after' | 'wait'>,
    Pick<FetchOptions, 'after' | 'follow' | 'signal' | 'onProblem'> {
  /** The keys that verify the events. By default the service's `/.well-known/jwks.json`. */
  verify?: KeySource | undefined;
}

/** A verified event. */
export interface FetchedEvent {
  /** Undefined if this version does not know its type, and if the cursor passes events not selected. */
  event: ServiceEvent | undefined;
  /** The text that was signed; undefined if there is no event. */
  body: string | undefined;
  /** Goes on after the event: store it when the event is handled. */
  cursor: string;
}

/** A typed client: `client.POST('/create/{documentId}', …)` resolves with `{ data, error, response }`. */
export interface ServiceClient extends Client<paths> {
  /**
   * The events after a cursor, verified, oldest first for each registry. It waits for further ones, and
   * repeats a failed request with its cursor. It needs `key`.
   *
   * @throws FetchError CURSOR_EXPIRED, with the first cursor that the service has; EVENT_NOT_GENUINE;
   *   KEY_INVALID; NO_ANSWER; or the code with which the service refused the request.
   */
  events(this: void, options?: EventsOptions): AsyncGenerator<FetchedEvent, void, undefined>;
}

/** Creates a client of the HTTP API. Its types are generated from the API's description. */
export function createClient(options: ClientOptions): ServiceClient {
  const { url, fetch, ...keys } = options;
  const client = createFetchClient<paths>({ baseUrl: url, ...(fetch && { fetch }) });
  client.use({
    onRequest({ request, schemaPath }) {
      const [key] = KEYS_OF_PATH[schemaPath]?.flatMap((name) => keys[name] ?? []) ?? [];
      if (key !== undefined) request.headers.set('Authorization', `Bearer ${key}`);
    },
  });
  return Object.assign(client, { events: (wanted: EventsOptions = {}) => fetchEvents(options, wanted) });
}

async function* fetchEvents(
  { url, key = '', fetch }: ClientOptions,
  { verify, after, follow, signal, onProblem, ...query }: EventsOptions,
): AsyncGenerator<FetchedEvent, void, undefined> {
  const base = url.replace(/\/$/, '');
  const findKey = keysOf(verify ?? { jwksUrl: `${base}/.well-known/jwks.json` });
  const from = { url: `${base}/events/stream`, key, findKey, query };
  for await (const page of fetchPages({ ...from, after, follow, signal, onProblem, fetch })) {
    for (const { body, cursor } of page.events) {
      yield { event: knownEvent(Buffer.from(body)), body, cursor };
      if (signal?.aborted) return;
    }
    const { cursor } = page;
    if (page.events.at(-1)?.cursor !== cursor) yield { event: undefined, body: undefined, cursor };
  }
}
