import { createHmac, sign } from 'node:crypto';
import type { SigningKey } from '../base/signing-keys';

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A new secret of a subscription, `whsec_…`. */
export function newWebhookSecret(randomBytes: (size: number) => Buffer): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** A delivery to sign. */
export interface SignedContent {
  eventId: string;
  /** Time of the attempt, in epoch milliseconds: receivers refuse old deliveries. */
  now: number;
  body: Buffer;
}

/**
 * The headers of Standard Webhooks (https://www.standardwebhooks.com), with two signatures: `v1`, an
 * HMAC-SHA256 under the secret, and `v1a`, an Ed25519 signature under the key that signs all deliveries.
 */
export function standardWebhookHeaders(
  { eventId, now, body }: SignedContent,
  secret: string,
  { privateKey }: SigningKey,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const content = Buffer.concat([Buffer.from(`${eventId}.${timestamp}.`), body]);
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const symmetric = createHmac('sha256', key).update(content).digest('base64');
  const asymmetric = sign(null, content, privateKey).toString('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${symmetric} v1a,${asymmetric}`,
  };
}
