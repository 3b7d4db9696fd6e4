import { sign, type KeyObject } from 'node:crypto';

/** The header of every delivery (the document, "Webhook deliveries"). */
export const SIGNATURE_HEADER = 'X-Service-Signature';

/** The header's value: an Ed25519 signature over exactly these bytes. Ed25519 is deterministic: every attempt carries the same. */
export function signatureOf(body: Buffer, signingKey: KeyObject): string {
  return `ed25519=${sign(null, body, signingKey).toString('base64url')}`;
}
