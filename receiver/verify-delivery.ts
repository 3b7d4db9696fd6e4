import { createPublicKey } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type {
  ChainEvent,
  RegistryEvent,
  Retraction,
  ServiceEvent,
  TestEvent,
  TokenEvent,
} from './event-schemas';
import { fetchedKeys } from './fetched-keys';
import { KEY_ID_HEADER, onlyKey, type PublicKeys } from './public-keys';
import { isUnknown, parseDelivery } from './received-event';
import { SIGNATURE_HEADER, verifySignature } from './verify-signature';

export type { ChainEvent, RegistryEvent, Retraction, ServiceEvent, TestEvent, TokenEvent };

/** The service's keys: the URL of its `/.well-known/jwks.json`, or its only public key as a PEM. */
export type KeySource = { jwksUrl: string } | { publicKey: string };

/**
 * A delivery after its check. `event` is undefined if the delivery is genuine and not an event that this
 * version knows: keep its body, and answer 200.
 */
export type CheckedDelivery = { isGenuine: false } | { isGenuine: true; event: ServiceEvent | undefined };

/** Checks one delivery. `body`: the bytes as they arrived. Rejects if the keys cannot be fetched. */
export type VerifyDelivery = (
  headers: IncomingHttpHeaders | Headers,
  body: Uint8Array,
) => Promise<CheckedDelivery>;

/** Creates a check of deliveries. Answer 401 if one is not genuine. */
export function createVerifier(source: KeySource): VerifyDelivery {
  const keys = 'jwksUrl' in source ? fetchedKeys(source.jwksUrl) : onlyKey(createPublicKey(source.publicKey));
  return async (headers, bytes) => {
    const plain = headers instanceof Headers ? Object.fromEntries(headers) : headers;
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (!(await isGenuine(plain, body, keys))) return { isGenuine: false };
    const received = parseDelivery(body);
    return { isGenuine: true, event: received && !isUnknown(received) ? received : undefined };
  };
}

/** Whether the delivery is signed with one of the service's keys. */
export async function isGenuine(
  headers: IncomingHttpHeaders,
  body: Buffer,
  publicKeys: PublicKeys,
): Promise<boolean> {
  const publicKey = await publicKeys.find(headers[KEY_ID_HEADER]);
  return publicKey !== undefined && verifySignature(headers[SIGNATURE_HEADER], body, publicKey);
}
