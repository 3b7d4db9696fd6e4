import { generateKeyPairSync } from 'node:crypto';
import { signingKeyOf, type SigningKeys } from '../../../service/base/signing-keys';
import { DEFAULT_RETRY_SCHEDULE, type Webhook } from '../../../service/config/followed-registries';

/** A new signing key. */
export function signingKeysOfTest(): SigningKeys {
  return { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
}

/** A webhook with the default settings and a new key. */
export function webhookTo(url: string): Webhook {
  return {
    url,
    headers: {},
    signingKeys: signingKeysOfTest(),
    timeoutMs: 15_000,
    maxConcurrentDeliveries: 16,
    retry: DEFAULT_RETRY_SCHEDULE,
  };
}
