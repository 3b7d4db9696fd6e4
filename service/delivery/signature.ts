import { sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

const signAside = promisify<null, Buffer, KeyObject, Buffer>(sign);

/** Header of every delivery (docs/specification.md 8.1). */
export const SIGNATURE_HEADER = 'X-Service-Signature';

/**
 * The header's value: an Ed25519 signature over exactly these bytes. Ed25519 is deterministic, so every
 * attempt carries the same signature. It is computed on another thread because signing takes as long as
 * sending.
 */
export async function signatureOf(body: Buffer, signingKey: KeyObject): Promise<string> {
  return `ed25519=${(await signAside(null, body, signingKey)).toString('base64url')}`;
}
