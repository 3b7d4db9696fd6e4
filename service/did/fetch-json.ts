import { isIPv4 } from 'node:net';
import { messageOf } from '../errors';

/**
 * What a URL answers:
 *
 * - `json`: the document. `url`: where it came from in the end.
 * - `refused`: the host answered, and what it answered is no such document; asking again gives the same.
 * - `unavailable`: no answer, or one that says nothing about the document. Nothing is known.
 */
export type FetchedJson =
  | { kind: 'json'; url: string; contentType: string; json: unknown }
  | { kind: 'refused' | 'unavailable'; url: string; problem: string };

const TIMEOUT_MS = 10_000;
const LARGEST_BYTES = 1_048_576;
const MOST_REDIRECTS = 3;
const ACCEPT = 'application/did+json, application/ld+json, application/json;q=0.9, */*;q=0.1';

/**
 * Fetches a JSON document that strangers publish: over HTTPS, redirects included. A host of this machine (`localhost`) is asked over
 * plain HTTP when it does not speak HTTPS: nobody else can answer for it.
 */
export async function fetchJson(url: URL): Promise<FetchedJson> {
  const first = await follow(url);
  const plain = plainUrlOf(url);
  if (first.kind !== 'unavailable' || plain === undefined) return first;
  return follow(plain);
}

/** The same URL over plain HTTP, if its host is this machine. */
function plainUrlOf(url: URL): URL | undefined {
  if (url.protocol !== 'https:' || !isThisMachine(url.hostname)) return undefined;
  const plain = new URL(url);
  plain.protocol = 'http:';
  return plain;
}

function isThisMachine(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}

async function follow(url: URL): Promise<FetchedJson> {
  let current = url;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const answer = await ask(current);
    if (!(answer instanceof URL)) return answer;
    if (answer.protocol !== 'https:' && !(answer.protocol === 'http:' && isThisMachine(answer.hostname))) {
      return {
        kind: 'refused',
        url: current.href,
        problem: `redirects to ${answer.protocol}//, not to https://`,
      };
    }
    current = answer;
  }
  return { kind: 'refused', url: url.href, problem: `redirects more than ${MOST_REDIRECTS} times` };
}

async function ask(url: URL): Promise<FetchedJson | URL> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(url, { signal, redirect: 'manual', headers: { accept: ACCEPT } });
    const location = response.headers.get('location');
    if (
      response.status >= 300 &&
      response.status < 400 &&
      location !== null &&
      URL.canParse(location, url.href)
    ) {
      await response.body?.cancel();
      return new URL(location, url);
    }
    if (!response.ok) {
      await response.body?.cancel();
      return {
        kind: isFinal(response.status) ? 'refused' : 'unavailable',
        url: url.href,
        problem: `answers ${response.status}`,
      };
    }
    return parsed(url, response.headers.get('content-type') ?? '', await limitedText(response));
  } catch (thrown) {
    const problem = signal.aborted ? `does not answer within ${TIMEOUT_MS / 1_000} s` : reasonOf(thrown);
    return { kind: 'unavailable', url: url.href, problem };
  }
}

/** A status that says something about the document, not about the host or the moment. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 421, 425, 429].includes(status);
}

/** The body, or undefined when it is larger than any such document. */
async function limitedText(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > LARGEST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(url: URL, contentType: string, text: string | undefined): FetchedJson {
  if (text === undefined)
    return { kind: 'refused', url: url.href, problem: `is larger than ${LARGEST_BYTES} bytes` };
  try {
    return { kind: 'json', url: url.href, contentType, json: JSON.parse(text) as unknown };
  } catch {
    return { kind: 'refused', url: url.href, problem: 'is not JSON' };
  }
}

/** `fetch` says "fetch failed" and keeps the reason (ECONNREFUSED, a wrong certificate) as the cause. */
function reasonOf(thrown: unknown): string {
  const { cause } = thrown as { cause?: unknown };
  return `cannot be reached: ${messageOf(cause ?? thrown) || messageOf(thrown)}`;
}
