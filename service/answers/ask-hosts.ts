import { lookup } from 'node:dns';
import { Agent, fetch } from 'undici';
import type { SinkRules } from '../base/sink-rules';
import { ForbiddenAddressError, guardedConnector } from '../delivery/guarded-connector';
import { fetchJson, type FetchedJson } from '../did/fetch-json';
import type { DocumentLoader } from '../issuance/document-loader';
import type { Fetched, Wanted } from './checking-process';

/** The hosts that may be asked, and the time for it. */
export interface Asking {
  /** The addresses that may be asked: the maker of a credential chooses them. */
  rules: SinkRules;
  /** Contexts that need not be fetched. */
  known: DocumentLoader;
  /** Milliseconds for all that a check has to fetch. */
  withinMs: number;
}

const CONNECT_WITHIN_MS = 5_000;
/** As many contexts as a verification loads. */
const MOST_CONTEXTS = 30;

/** The one who chose the address of a context is not the one who may allow it. */
const FORBIDDEN = 'this service does not connect to addresses of its kind';

/**
 * Fetches contexts, those that they name in turn, and a DID document, from allowed addresses only. The author
 * of a credential decides how many there are and how slowly their hosts answer: all share one time.
 *
 * @param left aborts when nobody waits for the answers any more.
 */
export async function askHosts(
  { contexts, did }: Wanted,
  { rules, known, withinMs }: Asking,
  left: AbortSignal,
): Promise<{ fetched: Map<string, Fetched>; lookedUp: string[] }> {
  const fetched = new Map<string, Fetched>();
  const lookedUp: string[] = [];
  const late = new AbortController();
  const reason = `it was not fetched within the ${withinMs / 1_000} s that a check may take for this`;
  const timer = setTimeout(() => late.abort(new Error(reason)), withinMs);
  const agents = new Map(
    ['https:', 'http:'].map((protocol) => {
      const connect = guardedConnector({ rules, lookup }, protocol, CONNECT_WITHIN_MS);
      return [protocol, new Agent({ connect })];
    }),
  );
  const asked = new Set<string>();

  async function fetchOne(href: string): Promise<FetchedJson> {
    let isForbidden = false;
    const answer = await fetchJson(new URL(href), withinMs, (url, options) => {
      lookedUp.push(url.href);
      const dispatcher = agents.get(url.protocol);
      const signal = AbortSignal.any([options.signal, late.signal, left]);
      return fetch(url, { ...options, signal, ...(dispatcher && { dispatcher }) }).catch(
        (thrown: unknown) => {
          isForbidden = (thrown as Error).cause instanceof ForbiddenAddressError;
          throw isForbidden ? new Error(FORBIDDEN) : thrown;
        },
      );
    });
    const mayComeLater = answer.kind === 'unavailable' && !isForbidden;
    fetched.set(href, answer.kind === 'json' ? { ...answer, json: undefined } : { ...answer, mayComeLater });
    return answer;
  }

  async function fetchContext(name: string, base?: string): Promise<void> {
    if (!URL.canParse(name, base)) return;
    const { href } = new URL(name, base);
    if (asked.has(href) || asked.size >= MOST_CONTEXTS) return;
    asked.add(href);
    const answer = await fetchOne(href);
    const named = answer.kind === 'json' ? await unknownIn(answer.json, known) : [];
    await Promise.all(named.map((one) => fetchContext(one, href)));
  }

  try {
    await Promise.all([did === undefined || fetchOne(did), ...contexts.map((url) => fetchContext(url))]);
  } finally {
    clearTimeout(timer);
    for (const agent of agents.values()) await agent.destroy();
  }
  left.throwIfAborted();
  return { fetched, lookedUp };
}

/** The contexts that one names: it may import others, and its terms may have contexts of their own. */
async function unknownIn(context: unknown, known: DocumentLoader): Promise<string[]> {
  const names = new Set<string>();
  const pending: unknown[] = [context];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, child] of Object.entries(value) as [string, unknown][]) {
      pending.push(child);
      if (key !== '@context' && key !== '@import') continue;
      for (const name of [child].flat()) if (typeof name === 'string') names.add(name);
    }
  }
  const unknown: string[] = [];
  for (const name of [...names].slice(0, MOST_CONTEXTS)) await known(name).catch(() => unknown.push(name));
  return unknown;
}
