import { sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { SigningKey } from '../base/signing-keys';

const signAside = promisify<null, Buffer, KeyObject, Buffer>(sign);

/** Headers of every delivery (docs/specification.md 8.1). */
export const SIGNATURE_HEADER = 'X-Service-Signature';
export const KEY_ID_HEADER = 'X-Service-Key-Id';

/**
 * The headers with an Ed25519 signature over exactly these bytes, and the id of its key. Ed25519 is
 * deterministic, so every attempt under the same key carries the same signature. It is computed on another
 * thread because signing takes as long as sending.
 */
export async function signatureHeaders(
  body: Buffer,
  { privateKey, id }: SigningKey,
): Promise<Record<string, string>> {
  const signature = await signAside(null, body, privateKey);
  return { [SIGNATURE_HEADER]: `ed25519=${signature.toString('base64url')}`, [KEY_ID_HEADER]: id };
}
