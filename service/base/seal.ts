import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

type Form = 'base64url' | 'hex';

/**
 * Encrypts bytes with AES-256-GCM: the text of nonce, ciphertext and tag. The length stays visible.
 *
 * @param key 32 bytes.
 * @param context `unseal` needs the same: what is copied to another context cannot be read there.
 */
export function seal(key: Uint8Array, bytes: Uint8Array, context: string, form: Form = 'base64url'): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const parts = [nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(parts).toString(form);
}

/** Inverse of `seal`. What is sealed has one text. @throws Error for any other text. */
export function unseal(key: Uint8Array, text: string, context: string, form: Form = 'base64url'): Buffer {
  const bytes = Buffer.from(text, form);
  if (bytes.toString(form) !== text) throw new Error('The text is not written as it was sealed.');
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}
