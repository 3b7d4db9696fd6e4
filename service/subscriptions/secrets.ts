import { ConfigurationError, RequestError } from '../base/errors';
import { seal, unseal } from '../base/seal';

/** Names the form of an encrypted text. */
const VERSION = '1.';

const SET_THE_KEY = 'Set SECRETS_KEY to the output of `openssl rand -base64 32`, and restart the service.';
const SET_THE_SAME_KEY = 'Set SECRETS_KEY to the key with which they were stored, and restart the service.';

/** SECRETS_KEY: 32 bytes. Undefined if it is not set. */
export type SecretsKey = Buffer | undefined;

/**
 * Encrypts the secrets of a subscription for the database. Only `decryptSecrets` with the same key and the
 * same subscription reads them, so a row that was copied to another subscription is not readable.
 *
 * @throws RequestError SECRETS_KEY_MISSING
 */
export function encryptSecrets(key: SecretsKey, text: string, subscription: string): string {
  if (key === undefined) {
    const problem = 'The subscription has secrets, and the service has no key to encrypt them.';
    throw new RequestError('SECRETS_KEY_MISSING', `${problem} ${SET_THE_KEY}`, { remedy: SET_THE_KEY });
  }
  return VERSION + seal(key, Buffer.from(text), subscription);
}

/**
 * Inverse of `encryptSecrets`.
 *
 * @throws ConfigurationError SECRETS_KEY_MISSING, or SECRETS_KEY_WRONG if the text was encrypted with another
 *   key, for another subscription, or was changed.
 */
export function decryptSecrets(key: SecretsKey, encrypted: string, subscription: string): string {
  if (key === undefined) {
    const problem = `The secrets of subscription ${subscription} are encrypted, and SECRETS_KEY is not set.`;
    throw new ConfigurationError('SECRETS_KEY_MISSING', `${problem} ${SET_THE_SAME_KEY}`, {
      remedy: SET_THE_SAME_KEY,
    });
  }
  try {
    if (!encrypted.startsWith(VERSION)) throw new Error('the encrypted text is of an unknown version');
    return unseal(key, encrypted.slice(VERSION.length), subscription).toString('utf8');
  } catch (cause) {
    const remedy = `${SET_THE_SAME_KEY} If it is lost, set the headers of the subscription again.`;
    const problem = `The secrets of subscription ${subscription} cannot be read with SECRETS_KEY.`;
    throw new ConfigurationError('SECRETS_KEY_WRONG', `${problem} ${remedy}`, { cause, remedy });
  }
}
