import { createECDH } from 'node:crypto';
import { constants as multikey } from '@digitalbazaar/multikey-context';
import { constants as did } from 'did-context';
import { decodeBase58, toBeArray } from 'ethers';
import * as z from 'zod';
import {
  didWebOf,
  keyNumberOf,
  MULTIKEY_CONTEXT_URL,
  newDidKeyPair,
  P256_SECRET_PREFIX,
  p256Multibase,
} from '../../service/base/did-key-pair';
import { ConfigurationError } from '../../service/base/errors';
import { settingOf, type Settings } from '../../service/config/settings';

/**
 * The DID that DOMAIN makes the issuer's.
 *
 * @throws ConfigurationError NOT_CONFIGURED.
 */
export function issuerOf(envFile: string, settings: Settings): string {
  const domain = settingOf(settings, 'DOMAIN');
  if (domain !== undefined) return didWebOf(domain);
  const remedy =
    `Set DOMAIN in ${envFile} to the host that serves /.well-known/did.json, ` +
    'for example trade.example.com.';
  throw new ConfigurationError('NOT_CONFIGURED', 'DOMAIN is not set.', { remedy });
}

const methodSchema = z.object({
  id: z.string(),
  type: z.literal('Multikey'),
  controller: z.string(),
  publicKeyMultibase: z.string(),
});

/** The public half of an issuer's key, as a DID document publishes it. */
export type VerificationMethod = z.infer<typeof methodSchema>;

/** The user is told so when a missing did.json was rebuilt from a later key. */
export const NO_EARLIER_KEY =
  'It has no earlier key: documents that one signed no longer verify. Restore the file if you can.';

/** The DID document that the service serves (docs/specification.md 3.9). */
export interface DidDocument {
  '@context': string[];
  id: string;
  verificationMethod: VerificationMethod[];
  authentication: string[];
  assertionMethod: string[];
  capabilityInvocation: string[];
  capabilityDelegation: string[];
}

/**
 * Builds the DID document of an issuer. The present key is allowed for every purpose. The earlier ones verify
 * what they signed, so `assertionMethod` names them too. They are good for nothing else: whoever
 * authenticates or acts as the issuer must have the present key.
 */
export function didDocumentOf(
  present: VerificationMethod,
  earlier: readonly VerificationMethod[] = [],
): DidDocument {
  const { id, controller } = present;
  const numberOf = (method: VerificationMethod): number => keyNumberOf(method.id, controller) ?? 0;
  const methods = [...earlier, methodSchema.parse(present)].sort((one, two) => numberOf(one) - numberOf(two));
  return {
    '@context': [did.DID_CONTEXT_URL, multikey.CONTEXT_URL],
    id: controller,
    verificationMethod: methods,
    authentication: [id],
    assertionMethod: methods.map((method) => method.id),
    capabilityInvocation: [id],
    capabilityDelegation: [id],
  };
}

const methodsSchema = z.object({ verificationMethod: z.array(z.unknown()) });

/** The issuer's keys in a DID document, in its order. Entries of another form or another DID are left out. */
export function keysIn(document: unknown, issuer: string): VerificationMethod[] {
  const parsed = methodsSchema.safeParse(document);
  const entries = parsed.success ? parsed.data.verificationMethod : [];
  const keys = entries.flatMap((entry) => {
    const { data } = methodSchema.safeParse(entry);
    const isKey = data?.controller === issuer && keyNumberOf(data.id, issuer) !== undefined;
    return isKey ? [data] : [];
  });
  return keys.filter(({ id }, index) => keys.findIndex((key) => key.id === id) === index);
}

/** A key that the issuer never had: its public half, and the setting of its private half, or of its label. */
export interface NewIssuerKey {
  method: VerificationMethod;
  setting: 'DID_KEY_PAIRS' | 'DID_PKCS11_KEY';
  value: string;
}

/**
 * Makes a key of the issuer, outside a module.
 *
 * @param id its verification method.
 */
export function makeIssuerKey(id: string, controller: string): NewIssuerKey {
  const { secretKeyMultibase, ...method } = newDidKeyPair(id, controller);
  const value = JSON.stringify({ '@context': MULTIKEY_CONTEXT_URL, ...method, secretKeyMultibase });
  return { method, setting: 'DID_KEY_PAIRS', value };
}

/** The public key of a P-256 secret key, both in multibase. Undefined if the secret key is damaged. */
export function publicKeyOf(secretKeyMultibase: string): string | undefined {
  try {
    const bytes = Buffer.from(toBeArray(decodeBase58(secretKeyMultibase.slice(1))));
    if (!bytes.subarray(0, 2).equals(P256_SECRET_PREFIX) || bytes.length !== 34) return undefined;
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytes.subarray(2));
    return p256Multibase(pair.getPublicKey());
  } catch {
    return undefined;
  }
}
