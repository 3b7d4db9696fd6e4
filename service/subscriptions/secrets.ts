import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ConfigurationError, RequestError } from '../base/errors';

/** Names the form of an encrypted text: AES-256-GCM, then base64url of nonce, ciphertext and tag. */
const VERSION = '1.';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const SET_THE_KEY = 'Set SECRETS_KEY to the output of `openssl rand -base64 32`, and restart the service.';
const SET_THE_SAME_KEY = 'Set SECRETS_KEY to the key with which they were stored, and restart the service.';

/** SECRETS_KEY: 32 bytes. Undefined if it is not set. */
export type SecretsKey = Buffer | undefined;

/**
 * Encrypts the secrets of a subscription for the database. Only `decryptSecrets` with the same key and the
 * same subscription reads them, so a row that was copied to another subscription is not readable.
 *
 * @param nonce replaced in tests. It must never repeat under one key.
 * @throws RequestError SECRETS_KEY_MISSING
 */
export function encryptSecrets(
  key: SecretsKey,
  text: string,
  subscription: string,
  nonce = randomBytes(NONCE_BYTES),
): string {
  if (key === undefined) {
    const problem = 'The subscription has secrets, and the service has no key to encrypt them.';
    throw new RequestError('SECRETS_KEY_MISSING', `${problem} ${SET_THE_KEY}`, { remedy: SET_THE_KEY });
  }
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(subscription));
  const bytes = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
  return VERSION + Buffer.concat(bytes).toString('base64url');
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
    return decrypted(encrypted, subscription, key);
  } catch (cause) {
    const remedy = `${SET_THE_SAME_KEY} If it is lost, set the headers of the subscription again.`;
    const problem = `The secrets of subscription ${subscription} cannot be read with SECRETS_KEY.`;
    throw new ConfigurationError('SECRETS_KEY_WRONG', `${problem} ${remedy}`, { cause, remedy });
  }
}

function decrypted(encrypted: string, subscription: string, key: Buffer): string {
  if (!encrypted.startsWith(VERSION)) throw new Error('the encrypted text is of an unknown version');
  const bytes = Buffer.from(encrypted.slice(VERSION.length), 'base64url');
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(subscription))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
