import { generateKeyPairSync } from 'node:crypto';
import { realisedOptions } from '../../../service/base/delivery-options';
import { signingKeyOf, type SigningKeys } from '../../../service/base/signing-keys';
import type { WebhookTarget } from '../../../service/delivery/attempt-delivery';

/** A new signing key. */
export function signingKeysOfTest(): SigningKeys {
  return { key: signingKeyOf(generateKeyPairSync('ed25519').privateKey), next: undefined };
}

/** A sink with the default options and a new key. */
export function webhookTo(url: string): WebhookTarget {
  return { url, headers: {}, signingKeys: signingKeysOfTest(), ...realisedOptions({}) };
}
