import { setTimeout as sleep } from 'node:timers/promises';
import { isGenuine, KEY_ID_HEADER, reasonOf, SIGNATURE_HEADER, type FindKey } from './verify';

/** Without a new event the service answers after this time. */
const WAIT_SECONDS = '30';
/** A connection that broke silently would keep a request for ever. */
const ANSWER_WITHIN_MS = 60_000;
/** The pause after a failed request doubles with each further one. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Longest pause that a service may ask for. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** After these, and all from 500, the same request may succeed later. */
const PASSING = [408, 425, 429];

/** A genuine event, or none if the cursor passes events that were not selected. */
export interface Fetched {
  /** The bytes that were signed. */
  body?: Buffer;
  /** Goes on after the event. */
  cursor: string;
}

export interface FetchOptions {
  /** `https://carrier.example/events/stream`. Its query may select events: `?subscription=…`. */
  url: string;
  /** ADMIN_API_KEY of the service. */
  key: string;
  findKey: FindKey;
  /** Where to go on. By default the first event is the oldest one that the service keeps. */
  after?: string | undefined;
  /** False: end after the events that there are. By default it waits for further ones. */
  follow?: boolean | undefined;
  /** Ends the events, without an error. */
  signal?: AbortSignal | undefined;
  /** Called for each failed request that is repeated. */
  onProblem?: ((problem: { reason: string }) => void) | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** The same request cannot succeed: the service refused it, or sent an event that it has not signed. */
export class FetchError extends Error {
  /**
   * @param code the `X-Error-Code` of the answer, such as CURSOR_EXPIRED; or EVENT_NOT_GENUINE.
   * @param cursor of CURSOR_EXPIRED: the first one that the service has. The events before it are lost.
   */
  constructor(
    message: string,
    readonly code: string,
    readonly cursor?: string,
  ) {
    super(message);
  }
}

/**
 * Fetches the events of a service in pages, oldest first for each registry. Each request goes on with the
 * last cursor, also after a failed one, so that no event is left out.
 *
 * @throws FetchError
 */
export async function* fetchPages(options: FetchOptions): AsyncGenerator<Fetched[], void, undefined> {
  const { findKey, follow = true, signal = new AbortController().signal, onProblem } = options;
  let { after } = options;
  let failures = 0;
  while (!signal.aborted) {
    const begun = performance.now();
    let askedMs = 0;
    try {
      const [{ status, headers }, text] = await ask({ ...options, after, follow, signal });
      askedMs = Number(headers.get('retry-after')) * 1_000 || 0;
      if (status !== 200) throw failureOf(status, headers.get('x-error-code'), text);
      const page = await pageOf(text, findKey);
      const cursor = page.at(-1)?.cursor;
      failures = 0;
      if (cursor !== after) yield page;
      else if (!follow) return;
      else if (performance.now() - begun < FIRST_PAUSE_MS) throw new Error('the answer came without waiting');
      after = cursor;
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof FetchError) throw thrown;
      const ownMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
      // Clients that a restart of the service cut off do not return at the same moment.
      const randomMs = Math.round(ownMs * (1 - Math.random() / 2));
      const pauseMs = Math.max(randomMs, Math.min(askedMs, LONGEST_RETRY_AFTER_MS));
      onProblem?.({ reason: `Events are fetched again in ${pauseMs} ms: ${reasonOf(thrown)}` });
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      failures += 1;
    }
  }
}

/** The answer and its text. */
async function ask(options: FetchOptions & { signal: AbortSignal }): Promise<[Response, string]> {
  const { key, after, follow, signal, fetch: send = fetch } = options;
  const url = new URL(options.url);
  url.searchParams.set('wait', follow ? WAIT_SECONDS : '0');
  if (after !== undefined) url.searchParams.set('after', after);
  const headers = { accept: 'application/json', authorization: `Bearer ${key}` };
  const limit = new AbortController();
  // A redirect would take the key elsewhere.
  const request = new Request(url, { headers, redirect: 'manual', signal: limit.signal });
  // Node.js forgets a request that nothing names, with its signal. AbortSignal.any of Node.js 20 forgets an
  // AbortSignal.timeout.
  const abort = (): void => limit.abort(new Error(`no answer from ${new URL(request.url).host}`));
  const timer = setTimeout(abort, ANSWER_WITHIN_MS);
  signal.addEventListener('abort', abort);
  try {
    const response = await send(request);
    return [response, await response.text()];
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** Every refusal of the service has a code; others come from something on the way. */
function failureOf(status: number, code: string | null, text: string): Error {
  if (status >= 500 || PASSING.includes(status)) return new Error(`the answer is ${status}`);
  if (code === null) return new FetchError(`The answer is ${status}. Correct the address.`, `HTTP_${status}`);
  const { error, cursor } = JSON.parse(text) as { error: { message: string }; cursor?: string };
  return new FetchError(error.message, code, cursor);
}

/** @throws FetchError EVENT_NOT_GENUINE. */
async function pageOf(text: string, findKey: FindKey): Promise<Fetched[]> {
  type Signed = { body: string; signature: string; keyId: string; cursor: string };
  const { events, cursor: last } = JSON.parse(text) as { events: Signed[]; cursor: string };
  const page: Fetched[] = [];
  for (const { body: signed, signature, keyId, cursor } of events) {
    const body = Buffer.from(signed);
    if (!(await isGenuine({ [SIGNATURE_HEADER]: signature, [KEY_ID_HEADER]: keyId }, body, findKey)))
      throw new FetchError(
        `An event is not signed with a key of the service (${keyId}).`,
        'EVENT_NOT_GENUINE',
      );
    page.push({ body, cursor });
  }
  return page.at(-1)?.cursor === last ? page : [...page, { cursor: last }];
}
