import { sign } from 'node:crypto';
import type { SigningKey } from '../base/signing-keys';

/** Headers of every delivery (docs/specification.md 8.1). */
export const SIGNATURE_HEADER = 'X-Service-Signature';
export const KEY_ID_HEADER = 'X-Service-Key-Id';

/**
 * The headers with an Ed25519 signature over exactly these bytes, and the id of its key. Ed25519 is
 * deterministic, so every attempt under the same key carries the same signature. It is computed on this
 * thread: to hand it to another takes as long.
 */
export function signatureHeaders(body: Buffer, { privateKey, id }: SigningKey): Record<string, string> {
  const signature = sign(null, body, privateKey);
  return { [SIGNATURE_HEADER]: `ed25519=${signature.toString('base64url')}`, [KEY_ID_HEADER]: id };
}
