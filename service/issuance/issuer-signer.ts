import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { MULTIKEY_CONTEXT_URL, type DidKeyPair } from '../base/did-key-pair';
import { ConfigurationError, messageOf } from '../base/errors';

/**
 * Creates a signer from the issuer's key. Both the public and the secret part are imported here, so that a
 * damaged pair is detected.
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createIssuerSigner(keyPair: DidKeyPair): Promise<EcdsaMultikey.Signer> {
  try {
    const key = await EcdsaMultikey.from({ '@context': MULTIKEY_CONTEXT_URL, ...keyPair });
    return key.signer();
  } catch (cause) {
    const remedy = 'Restore the pair you had, or make a new one with `npx tdoc did --force`.';
    const message = `DID_KEY_PAIRS is damaged: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('CONFIGURATION_INVALID', message, { cause, remedy });
  }
}
