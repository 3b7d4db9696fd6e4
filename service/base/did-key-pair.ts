import { z } from 'zod';

/**
 * The did:web key pair as DID_KEY_PAIRS stores it: an exported Multikey with its secret part
 * (https://www.w3.org/TR/controller-document/#Multikey). `id` is the verification method, `controller` the
 * issuer's DID.
 */
export interface DidKeyPair {
  id: string;
  type: 'Multikey';
  controller: string;
  publicKeyMultibase: string;
  secretKeyMultibase: string;
}

/** P-256 keys in Multikey's multibase-base58btc form start with these characters. */
const P256_PUBLIC_PREFIX = 'zDn';
const P256_SECRET_PREFIX = 'z42';

const didKeyPairSchema = z.object({
  id: z.string().regex(/^did:web:[^#]+#.+$/, 'must be a did:web URL with a fragment'),
  type: z.literal('Multikey', 'must be "Multikey"'),
  controller: z.string().startsWith('did:web:', 'must be a did:web identifier'),
  publicKeyMultibase: z.string().startsWith(P256_PUBLIC_PREFIX, 'must be a P-256 public key'),
  secretKeyMultibase: z.string().startsWith(P256_SECRET_PREFIX, 'must be a P-256 secret key'),
});

/** The context of an exported Multikey. */
export const MULTIKEY_CONTEXT_URL = 'https://w3id.org/security/multikey/v1';

/** The verification method's fragment (docs/specification.md 3.7: `<did>#keys-1`). */
export const KEY_FRAGMENT = 'keys-1';

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
  if (keyPair.id !== `${keyPair.controller}#${KEY_FRAGMENT}`) {
    return { problem: `has a wrong field: id must be the controller followed by #${KEY_FRAGMENT}` };
  }
  return { keyPair };
}
