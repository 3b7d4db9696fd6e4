import type { KeyObject } from 'node:crypto';

/** Name of the key id's header, in the spelling of Node.js. */
export const KEY_ID_HEADER = 'x-service-key-id';

/** The service's public keys. */
export interface PublicKeys {
  /**
   * The key that verifies a delivery with this X-Service-Key-Id. Undefined if the service has no such key.
   *
   * @throws Error if the keys cannot be fetched.
   */
  find(keyId: string | string[] | undefined): Promise<KeyObject | undefined>;
}

/** One key, which verifies every delivery. */
export function onlyKey(publicKey: KeyObject): PublicKeys {
  return { find: async () => publicKey };
}
