import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { MULTIKEY_CONTEXT_URL, type DidKeyPair } from '../base/did-key-pair';
import { ConfigurationError, messageOf } from '../base/errors';

/** Where the issuer's key is: a plain value, so that it can be passed to a thread and opened there. */
export type IssuerKey = DidKeyPair;

/** Signs bytes with the P-256 key that a verification method names. */
export interface IssuerSigner {
  /** The verification method, as in the proofs. */
  readonly id: string;
  readonly algorithm: string;
  /** ECDSA with SHA-256: r and s, 32 bytes each. */
  sign(bytes: { data: Uint8Array }): Promise<Uint8Array>;
}

/**
 * Opens the issuer's key. Both the public and the secret part are imported here, so that a damaged pair is
 * detected.
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function openIssuerKey(key: IssuerKey): Promise<IssuerSigner> {
  try {
    const pair = await EcdsaMultikey.from({ '@context': MULTIKEY_CONTEXT_URL, ...key });
    return pair.signer();
  } catch (cause) {
    const remedy = 'Restore the pair you had, or make the next one with `npx tdoc did --rotate`.';
    const message = `DID_KEY_PAIRS is damaged: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('CONFIGURATION_INVALID', message, { cause, remedy });
  }
}
