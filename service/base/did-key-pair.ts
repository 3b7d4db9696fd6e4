import { createECDH, createPublicKey, ECDH, type KeyObject } from 'node:crypto';
import { encodeBase58 } from 'ethers';
import * as z from 'zod';

const didKeyPairSchema = z.object({
  id: z.string().regex(/^did:web:[^#]+#.+$/, 'must be a did:web URL with a fragment'),
  type: z.literal('Multikey', 'must be "Multikey"'),
  controller: z.string().startsWith('did:web:', 'must be a did:web identifier'),
  // P-256 keys in Multikey's multibase-base58btc form start with these characters.
  publicKeyMultibase: z.string().startsWith('zDn', 'must be a P-256 public key'),
  secretKeyMultibase: z.string().startsWith('z42', 'must be a P-256 secret key'),
});

/**
 * The did:web key pair as DID_KEY_PAIRS stores it: an exported Multikey with its secret part
 * (https://www.w3.org/TR/controller-document/#Multikey). `id` is the verification method, `controller` the
 * issuer's DID.
 */
export type DidKeyPair = z.infer<typeof didKeyPairSchema>;

/** The context of an exported Multikey. */
export const MULTIKEY_CONTEXT_URL = 'https://w3id.org/security/multikey/v1';

/** The verification method of an issuer's key. The first is `<did>#keys-1` (docs/specification.md 3.7). */
export function keyIdOf(did: string, number: number): string {
  return `${did}#keys-${number}`;
}

/**
 * The id of an issuer's next key. Not even the fragment of a damaged or lost key is used again: documents
 * name it, and somebody may have its key.
 *
 * @param texts everything that may name earlier keys of the issuer, damaged or not.
 */
export function nextKeyIdOf(did: string, texts: readonly string[]): string {
  const named = texts.flatMap((text) => text.split(`${did}#keys-`).slice(1));
  const numbers = named.map((rest) => Number(/^\d{1,9}/.exec(rest)?.[0] ?? '0'));
  return keyIdOf(did, Math.max(0, ...numbers) + 1);
}

/** The number of an issuer's key. Undefined if the id has another form, or belongs to another DID. */
export function keyNumberOf(id: string, did: string): number | undefined {
  const number = Number(/#keys-(\d{1,9})$/.exec(id)?.[1] ?? '0');
  return number > 0 && id === keyIdOf(did, number) ? number : undefined;
}

/**
 * The did:web identifier of a domain: the port's colon is percent-encoded
 * (https://w3c-ccg.github.io/did-method-web/#method-specific-identifier).
 */
export function didWebOf(domain: string): string {
  return `did:web:${domain.replace(':', '%3A')}`;
}

/** JSON that ends within its first DID: in an env file, `#` ends a value that has no quotes around it. */
const CUT_AT_FRAGMENT = /^\{[^#]*"did:web:[^"#]*$/;

/**
 * Reads DID_KEY_PAIRS. Quotes that a shell or a container platform left escaped (`{\"id\":…}`) are stripped
 * of their backslashes first, as docs/specification.md 1.2 asks. Never throws the value itself: the
 * reason names only fields.
 *
 * @returns the key pair, or what is wrong. `remedy` is there if the value is cut: the whole of it is still in
 *   the env file, so that a new pair would be a mistake.
 */
export function parseDidKeyPair(
  text: string,
): { keyPair: DidKeyPair } | { problem: string; remedy?: string } {
  const json = text.replaceAll('\\"', '"');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    if (!CUT_AT_FRAGMENT.test(json)) return { problem: 'is not valid JSON' };
    const remedy = "Put the value in single quotes in the env file: DID_KEY_PAIRS='{…}'.";
    return { problem: 'is cut at its first #, which starts a comment in a value without quotes', remedy };
  }
  const parsed = didKeyPairSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return {
      problem: `has a wrong field: ${issue?.path.join('.') || '(the whole)'} ${issue?.message ?? ''}`.trim(),
    };
  }
  const keyPair = parsed.data;
  if (keyNumberOf(keyPair.id, keyPair.controller) === undefined) {
    return { problem: 'has a wrong field: id must be the controller followed by #keys- and a number from 1' };
  }
  return { keyPair };
}

/** The bytes of a P-256 coordinate, and of a secret key. */
export const P256_BYTES = 32;
/** The multicodec prefix of a public key in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
export const P256_PUBLIC_PREFIX = Buffer.from([0x80, 0x24]);

/** @param point in any form of SEC 1. */
function compressed(point: Uint8Array): Buffer {
  return ECDH.convertKey(Buffer.from(point), 'prime256v1', undefined, undefined, 'compressed') as Buffer;
}

/** The public key as a Multikey has it. `point`: in any form of SEC 1. */
export function p256Multibase(point: Uint8Array): string {
  return `z${encodeBase58(Buffer.concat([P256_PUBLIC_PREFIX, compressed(point)]))}`;
}

/** The DER of a P-256 key before its compressed point (RFC 5480). */
const P256_SPKI = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex');

/** The public key for node:crypto. `point`: in any form of SEC 1. */
export function p256PublicKey(point: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([P256_SPKI, compressed(point)]), format: 'der', type: 'spki' });
}

/**
 * Makes a key pair by ECDH. Node.js 20 may deadlock after `generateKeyPair`: garbage collection that starts
 * during the export of the new key waits for the lock that the export holds. The thread then hangs for ever,
 * once in some thousands of keys.
 *
 * @returns `point`: a byte of form, x and y. `compressed`: a byte for the parity of y, and x.
 */
export function newP256Key(): { secret: Buffer; point: Buffer; compressed: Buffer } {
  const pair = createECDH('prime256v1');
  const point = pair.generateKeys();
  // ECDH leaves out leading zeros, and RFC 7518 (section 6.2.2.1) requires them.
  const secret = Buffer.from(pair.getPrivateKey('hex').padStart(2 * P256_BYTES, '0'), 'hex');
  return { secret, point, compressed: pair.getPublicKey(null, 'compressed') };
}

/** The multicodec prefix of a secret key in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
export const P256_SECRET_PREFIX = Buffer.from([0x86, 0x26]);

/** A new key pair of an issuer. */
export function newDidKeyPair(id: string, controller: string): DidKeyPair {
  const { secret, point } = newP256Key();
  const secretKeyMultibase = `z${encodeBase58(Buffer.concat([P256_SECRET_PREFIX, secret]))}`;
  return { id, type: 'Multikey', controller, publicKeyMultibase: p256Multibase(point), secretKeyMultibase };
}
