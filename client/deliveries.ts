import { createPublicKey } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { parseEvent } from '../receiver/store';
import { isGenuine, onlyKey, publishedKeys, type FindKey } from '../receiver/verify';
import { isKnown, type ServiceEvent } from './events';

/** The service's keys: the URL of its `/.well-known/jwks.json`, or its only public key as a PEM. */
export type KeySource = { jwksUrl: string } | { publicKey: string };

/**
 * A delivery after its check. `event` is undefined if the delivery is genuine and of a type that this version
 * does not know: keep its body, and answer 200.
 */
export type CheckedDelivery = { isGenuine: false } | { isGenuine: true; event: ServiceEvent | undefined };

/** Checks one delivery. `body`: the bytes as they arrived. Rejects if the keys cannot be fetched. */
export type VerifyDelivery = (
  headers: IncomingHttpHeaders | Headers,
  body: Uint8Array,
) => Promise<CheckedDelivery>;

/** Creates a check of deliveries. Answer 401 if one is not genuine. */
export function createVerifier(source: KeySource): VerifyDelivery {
  const findKey = keysOf(source);
  return async (headers, bytes) => {
    const plain = headers instanceof Headers ? Object.fromEntries(headers) : headers;
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (!(await isGenuine(plain, body, findKey))) return { isGenuine: false };
    return { isGenuine: true, event: knownEvent(body) };
  };
}

/** The keys of a source. They are fetched when an event needs them. */
export function keysOf(source: KeySource): FindKey {
  return 'jwksUrl' in source ? publishedKeys(source.jwksUrl) : onlyKey(createPublicKey(source.publicKey));
}

/** The event in a body; undefined if this version does not know its type. */
export function knownEvent(body: Buffer): ServiceEvent | undefined {
  const event = parseEvent(body);
  return event && isKnown(event) ? event : undefined;
}
