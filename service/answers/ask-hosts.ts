import { lookup } from 'node:dns';
import { Agent, fetch } from 'undici';
import type { SinkRules } from '../base/sink-rules';
import type { Time } from '../base/time';
import { ForbiddenAddressError, guardedConnector } from '../delivery/guarded-connector';
import { createFetchingBytes, type Get } from '../did/fetch-json';
import type { Found } from './checking-task';

const CONNECT_WITHIN_MS = 5_000;

/** The one who chose the address of a context is not the one who may allow it. */
const FORBIDDEN = 'this service does not connect to addresses of its kind';

/**
 * Fetches from allowed addresses only, and adds the answers to what was found. They are not read here: a
 * stranger chose them, and they would hold up all others.
 *
 * @param withinMs for all that a check fetches. `restMs`: what is left of it.
 * @param left aborts when nobody waits for the answers any more.
 */
export async function askHosts(
  urls: readonly string[],
  { fetched, lookedUp }: Found,
  { time, rules, withinMs, restMs }: { time: Time; rules: SinkRules; withinMs: number; restMs: number },
  left: AbortSignal,
): Promise<void> {
  const agents = new Map(
    ['https:', 'http:'].map((protocol) => {
      const connect = guardedConnector({ rules, lookup }, protocol, CONNECT_WITHIN_MS);
      return [protocol, new Agent({ connect })];
    }),
  );
  const forbidden = new Set<string>();
  const get: Get = (url, options) => {
    lookedUp.push(url.href);
    const dispatcher = agents.get(url.protocol);
    const signal = AbortSignal.any([options.signal, left]);
    return fetch(url, { ...options, signal, ...(dispatcher && { dispatcher }) }).catch((thrown: unknown) => {
      if (!((thrown as Error).cause instanceof ForbiddenAddressError)) throw thrown;
      forbidden.add(url.href);
      throw new Error(FORBIDDEN);
    });
  };
  const fetchOne = createFetchingBytes(time, withinMs, get, restMs);
  try {
    await Promise.all(
      urls.map(async (href) => {
        const answer = await fetchOne(new URL(href));
        const mayComeLater = answer.kind === 'unavailable' && !forbidden.has(answer.url);
        fetched.set(href, { ...answer, mayComeLater });
      }),
    );
  } finally {
    for (const agent of agents.values()) await agent.destroy();
  }
  left.throwIfAborted();
}
