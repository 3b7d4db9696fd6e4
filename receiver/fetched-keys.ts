import type { KeyObject } from 'node:crypto';
import { fetchJwks } from './fetch-jwks';
import type { PublicKeys } from './public-keys';

/** Anybody can send requests with an unknown key id: they must not make the receiver fetch at each. */
const SHORTEST_MS_BETWEEN_FETCHES = 10_000;
/** A key that the service has withdrawn is refused after this time. */
const KEPT_FOR_MS = 10 * 60_000;

/**
 * The keys that the service publishes at a URL. They are fetched for the first delivery, when a key id is not
 * known, and when they are old. If old keys cannot be fetched again, they stay in use: deliveries must not
 * stop when only the page of the keys is unavailable.
 *
 * @param now milliseconds since any time, never going back.
 */
export function fetchedKeys(url: string, now: () => number = () => performance.now()): PublicKeys {
  let keys = new Map<string, KeyObject>();
  let fetchedAt = -Infinity;
  let lastFetchAt = -Infinity;
  let lastFetch: Promise<void> = Promise.resolve();

  /** Deliveries that need the keys at the same time, or shortly after, share one fetch and its outcome. */
  function refresh(): Promise<void> {
    if (now() - lastFetchAt >= SHORTEST_MS_BETWEEN_FETCHES) {
      lastFetchAt = now();
      lastFetch = fetchJwks(url).then((fetched) => {
        keys = fetched;
        fetchedAt = now();
      });
    }
    return lastFetch;
  }

  return {
    async find(keyId) {
      if (typeof keyId !== 'string') return undefined;
      const known = keys.get(keyId);
      if (known && now() - fetchedAt < KEPT_FOR_MS) return known;
      try {
        await refresh();
      } catch (error) {
        if (known) return known;
        throw error;
      }
      return keys.get(keyId);
    },
  };
}
