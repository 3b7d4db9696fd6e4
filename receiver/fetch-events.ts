import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf, verifySignature, type FindKey } from './verify';

/** Without a new event the service answers after this time. */
const WAIT_SECONDS = '30';
/** A connection that broke silently would keep a request for ever. */
const ANSWER_WITHIN_MS = 60_000;
/** The pause after a failed request doubles with each further one. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Longest pause that a service may ask for. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** With `follow: false`, so many failed requests in a row end the events. */
const MOST_FAILURES = 5;

/** The genuine events of an answer. `body`: the text that was signed. `cursor`: goes on after the event. */
export interface FetchedPage {
  events: { body: string; signature: string; keyId: string; cursor: string }[];
  /** Goes on after all, and after those that were not selected. */
  cursor: string;
}

export interface FetchOptions {
  /** `https://carrier.example/events/stream`. Its query may select events: `?subscription=…`. */
  url: string;
  /** More of the query. */
  query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  /** A key with a scope, or ADMIN_API_KEY of the service. */
  key: string;
  findKey: FindKey;
  /** Where to go on. By default the first event is the oldest one that the service keeps. */
  after?: string | undefined;
  /** False: end after the events that there are, or NO_ANSWER. By default it waits for further ones. */
  follow?: boolean | undefined;
  /** Ends the events, without an error. */
  signal?: AbortSignal | undefined;
  /** Called for each failed request that is repeated. */
  onProblem?: ((problem: { reason: string }) => void) | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** The service refused the request, sent an event that it has not signed, or does not answer. */
export class FetchError extends Error {
  /**
   * @param code the `X-Error-Code` of the answer, such as CURSOR_EXPIRED; or EVENT_NOT_GENUINE, KEY_INVALID,
   *   NO_ANSWER.
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
export async function* fetchPages(options: FetchOptions): AsyncGenerator<FetchedPage, void, undefined> {
  const { follow = true, signal = new AbortController().signal, onProblem } = options;
  // An error of fetch would quote the key.
  if (!/^[ -~]+$/.test(options.key))
    throw new FetchError(
      'The key is empty or not printable ASCII. Set RECEIVER_API_KEY or `key`.',
      'KEY_INVALID',
    );
  const url = new URL(options.url);
  for (const [name, value] of Object.entries(options.query ?? {}))
    if (value !== undefined) url.searchParams.set(name, String(value));
  let { after } = options;
  for (let failures = 0; !signal.aborted;) {
    const begun = performance.now();
    let askedMs = 0;
    try {
      // A failed request that waits for the events after now would not know from when on.
      url.searchParams.set('wait', follow && after !== 'now' ? WAIT_SECONDS : '0');
      if (after !== undefined) url.searchParams.set('after', after);
      const [{ status, headers }, text] = await ask(url, signal, options);
      askedMs = Number(headers.get('retry-after')) * 1_000 || 0;
      if (status !== 200) throw failureOf(status, headers.get('x-error-code'), text);
      const page = await pageOf(text, options.findKey);
      signal.throwIfAborted();
      failures = 0;
      if (page.cursor !== after) yield page;
      else if (!follow) return;
      else if (performance.now() - begun < FIRST_PAUSE_MS) throw new Error('the answer came without waiting');
      after = page.cursor;
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof FetchError) throw thrown;
      failures += 1;
      if (!follow && failures === MOST_FAILURES)
        throw new FetchError(`No events could be fetched: ${reasonOf(thrown)}.`, 'NO_ANSWER');
      // Clients that a restart of the service cut off do not return at the same moment.
      const ownMs =
        Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS) * (1 - Math.random() / 2);
      const pauseMs = Math.round(Math.max(ownMs, Math.min(askedMs, LONGEST_RETRY_AFTER_MS)));
      onProblem?.({ reason: `Events are fetched again in ${pauseMs} ms: ${reasonOf(thrown)}` });
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The answer and its text. */
async function ask(url: URL, signal: AbortSignal, options: FetchOptions): Promise<[Response, string]> {
  const { key, fetch: send = fetch } = options;
  const headers = { accept: 'application/json', authorization: `Bearer ${key}` };
  const limit = new AbortController();
  // A redirect would take the key elsewhere.
  const request = new Request(url, { headers, redirect: 'manual', signal: limit.signal });
  // Node.js forgets a request that nothing names, with its signal. AbortSignal.any of Node.js 20 forgets an
  // AbortSignal.timeout.
  const abort = (): void => limit.abort(new Error(`no answer from ${url.host}`));
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
  // The same request may succeed later.
  if (status >= 500 || [408, 425, 429].includes(status)) return new Error(`the answer is ${status}`);
  if (code === null) return new FetchError(`The answer is ${status}. Correct the address.`, `HTTP_${status}`);
  const { error, cursor } = JSON.parse(text) as { error: { message: string }; cursor?: string };
  return new FetchError(error.message, code, cursor);
}

/** @throws FetchError EVENT_NOT_GENUINE. */
async function pageOf(text: string, findKey: FindKey): Promise<FetchedPage> {
  const page = JSON.parse(text) as FetchedPage;
  if (!page.cursor) throw new Error('the answer has no cursor');
  for (const { body, signature, keyId } of page.events) {
    const publicKey = await findKey(keyId);
    // A new key may be published later than the first event that it signs.
    if (publicKey === undefined) throw new Error(`the service does not publish the key ${keyId}`);
    if (!verifySignature(signature, Buffer.from(body), publicKey))
      throw new FetchError(`An event is not signed with the key ${keyId}.`, 'EVENT_NOT_GENUINE');
  }
  return page;
}

/**
 * Whether keys may go to an address, and come from it. Over plain http, anybody on the way could replace the
 * keys, and read the key of the requests.
 */
export function isSafeUrl(text: string): boolean {
  const { protocol, hostname = '', username, password } = URL.canParse(text) ? new URL(text) : {};
  const isThisMachine = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return !username && !password && (protocol === 'https:' || (protocol === 'http:' && isThisMachine));
}
