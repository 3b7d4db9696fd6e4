import { connectionProblem } from '../base/errors';
import { readBounded } from '../base/read-bounded';
import { isThisMachine } from '../base/sink-rules';
import { type Time, within } from '../base/time';
import { jsonIn, type FetchedBytes, type FetchedJson } from './fetched-json';

/** Fetches a JSON document. It never rejects. */
export type FetchJson = (url: URL) => Promise<FetchedJson>;

/** Makes a request like `fetch`. */
export type Get = (
  url: URL,
  options: { signal: AbortSignal; redirect: 'manual'; headers: Record<string, string> },
) => Promise<Response>;

export const LONGEST_FETCHING_MS = 10_000;
const LARGEST_BYTES = 1_048_576;
const MOST_REDIRECTS = 3;
const ACCEPT = 'application/did+json, application/ld+json, application/json;q=0.9, */*;q=0.1';

/**
 * Fetches JSON documents that strangers publish: over HTTPS, following redirects. A host of this machine
 * (`localhost`) that does not speak HTTPS is asked over plain HTTP: no other machine can answer for it. All
 * calls share one time, in milliseconds, from the first on: the author of a credential decides how many
 * contexts there are, and how slowly their hosts answer.
 */
export function createFetching(time: Time, withinMs = LONGEST_FETCHING_MS): FetchJson {
  const fetchOne = createFetchingBytes(time, withinMs);
  return async (url) => jsonIn(await fetchOne(url));
}

/**
 * Like createFetching, for one who reads the answers elsewhere.
 *
 * @param get makes the requests: it may forbid some hosts.
 * @param restMs what is left of the time.
 */
export function createFetchingBytes(
  time: Time,
  withinMs: number,
  get: Get = fetch,
  restMs = withinMs,
): (url: URL) => Promise<FetchedBytes> {
  const lateProblem = `was not fetched within the ${withinMs / 1_000} s that a check may take for this`;
  let until: number | undefined;
  return (url) => {
    until ??= time.elapsed() + restMs;
    return within(time, Math.max(until - time.elapsed(), 0), (late) =>
      fetchBytes(url, (at) => ask(at, get, late, lateProblem)),
    );
  };
}

/** Makes one request. The answer is a document, or leads to another URL. */
type Ask = (url: URL) => Promise<FetchedBytes | URL>;

async function fetchBytes(url: URL, askOne: Ask): Promise<FetchedBytes> {
  if (!isSafe(url)) return { kind: 'refused', url: url.href, problem: 'is not https://' };
  const first = await follow(url, askOne);
  const plain = plainUrlOf(url);
  if (first.kind !== 'unavailable' || plain === undefined) return first;
  const second = await follow(plain, askOne);
  if (second.kind !== 'unavailable') return second;
  return { ...first, problem: `${first.problem}; over plain HTTP it ${second.problem}` };
}

/** The same URL over plain HTTP, if its host is this machine. */
function plainUrlOf(url: URL): URL | undefined {
  if (url.protocol !== 'https:' || !isThisMachine(url.hostname)) return undefined;
  const plain = new URL(url);
  plain.protocol = 'http:';
  return plain;
}

async function follow(url: URL, askOne: Ask): Promise<FetchedBytes> {
  let current = url;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const answer = await askOne(current);
    if (!(answer instanceof URL)) return answer;
    if (!mayFollow(current, answer)) {
      const problem = `redirects to ${answer.protocol}//${answer.host}, not to https://`;
      return { kind: 'refused', url: current.href, problem };
    }
    current = answer;
  }
  return { kind: 'refused', url: url.href, problem: `redirects more than ${MOST_REDIRECTS} times` };
}

/** A redirect must lead to HTTPS. Only hosts of this machine may redirect to it, or to plain HTTP on it. */
function mayFollow(from: URL, to: URL): boolean {
  return isSafe(to) && (isThisMachine(from.hostname) || !isThisMachine(to.hostname));
}

/** Whether nobody between can change the answer. */
function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isThisMachine(hostname));
}

async function ask(url: URL, get: Get, late: AbortSignal, lateProblem: string): Promise<FetchedBytes | URL> {
  try {
    const response = await get(url, { signal: late, redirect: 'manual', headers: { accept: ACCEPT } });
    if (response.ok) {
      const body = await readBounded((response.body ?? []) as AsyncIterable<Uint8Array>, LARGEST_BYTES);
      const contentType = response.headers.get('content-type') ?? '';
      if (body !== undefined) return { kind: 'bytes', url: url.href, contentType, bytes: body };
      return { kind: 'refused', url: url.href, problem: `is larger than ${LARGEST_BYTES} bytes` };
    }
    await response.body?.cancel();
    const { status } = response;
    const location = response.headers.get('location') ?? '';
    if (status >= 300 && status < 400 && location !== '' && URL.canParse(location, url.href))
      return new URL(location, url);
    return { kind: isFinal(status) ? 'refused' : 'unavailable', url: url.href, problem: `answers ${status}` };
  } catch (thrown) {
    // `fetch` says "fetch failed" and keeps the reason (ECONNREFUSED, a wrong certificate) as the cause.
    const { cause = thrown } = thrown as { cause?: unknown };
    const problem = late.aborted ? lateProblem : `cannot be reached: ${connectionProblem(cause)}`;
    return { kind: 'unavailable', url: url.href, problem };
  }
}

/** Statuses that depend on the client or the time: firewalls that block programs answer 403. */
const NOT_ABOUT_THE_DOCUMENT = [401, 403, 407, 408, 421, 425, 429, 451];

/** Whether a status says something about the document, rather than about the host or the moment. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && !NOT_ABOUT_THE_DOCUMENT.includes(status);
}
