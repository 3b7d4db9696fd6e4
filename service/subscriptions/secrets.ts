import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ConfigurationError, RequestError } from '../base/errors';

/** Names the form of an encrypted text: AES-256-GCM, then base64url of nonce, ciphertext and tag. */
const VERSION = '1.';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const SET_THE_KEY = 'Set SECRETS_KEY to the output of `openssl rand -base64 32`, and restart the service.';

/** Encrypts the secrets of subscriptions for the database. */
export type SecretsCipher = ReturnType<typeof createSecretsCipher>;

/**
 * Creates the cipher.
 *
 * @param key SECRETS_KEY: 32 bytes; undefined if it is not set.
 * @param newNonce replaced in tests. A nonce must never repeat under one key.
 */
export function createSecretsCipher(key: Buffer | undefined, newNonce = () => randomBytes(NONCE_BYTES)) {
  return {
    /**
     * Encrypts a text. Only `decrypt` with the same key and the same subscription reads it, so a row that was
     * copied to another subscription is not readable.
     *
     * @throws RequestError SECRETS_KEY_MISSING
     */
    encrypt(text: string, subscription: string): string {
      if (key === undefined) {
        const problem = 'The subscription has secrets, and the service has no key to encrypt them.';
        throw new RequestError('SECRETS_KEY_MISSING', `${problem} ${SET_THE_KEY}`, { remedy: SET_THE_KEY });
      }
      const nonce = newNonce();
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(subscription));
      const bytes = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return VERSION + Buffer.concat(bytes).toString('base64url');
    },
    /**
     * Inverse of `encrypt`.
     *
     * @throws ConfigurationError SECRETS_KEY_MISSING, or SECRETS_KEY_WRONG if the text was encrypted with
     *   another key, for another subscription, or was changed.
     */
    decrypt(encrypted: string, subscription: string): string {
      if (key === undefined) {
        const remedy = 'Set SECRETS_KEY to the key with which they were stored, and restart the service.';
        const message =
          `The secrets of subscription ${subscription} are encrypted, ` +
          `and SECRETS_KEY is not set. ${remedy}`;
        throw new ConfigurationError('SECRETS_KEY_MISSING', message, { remedy });
      }
      try {
        return decrypted(encrypted, subscription, key);
      } catch (cause) {
        const remedy =
          'Set SECRETS_KEY to the key with which they were stored, and restart the service. If it is lost, ' +
          'set the headers of the subscription again.';
        const problem = `The secrets of subscription ${subscription} cannot be read with SECRETS_KEY.`;
        throw new ConfigurationError('SECRETS_KEY_WRONG', `${problem} ${remedy}`, { cause, remedy });
      }
    },
  };
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
