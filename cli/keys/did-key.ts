import { createECDH } from 'node:crypto';
import { constants as multikey } from '@digitalbazaar/multikey-context';
import { constants as did } from 'did-context';
import { decodeBase58, encodeBase58, toBeArray } from 'ethers';
import { didWebOf, newP256Key, P256_PUBLIC_PREFIX, type DidKeyPair } from '../../service/base/did-key-pair';
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

/** The DID document that the service serves (docs/specification.md 3.9). */
export interface DidDocument {
  '@context': string[];
  id: string;
  verificationMethod: { id: string; type: string; controller: string; publicKeyMultibase: string }[];
  authentication: string[];
  assertionMethod: string[];
  capabilityInvocation: string[];
  capabilityDelegation: string[];
}

/** Builds the DID document of a key pair: the public half only, allowed for every purpose. */
export function didDocumentOf({ id, type, controller, publicKeyMultibase }: DidKeyPair): DidDocument {
  return {
    '@context': [did.DID_CONTEXT_URL, multikey.CONTEXT_URL],
    id: controller,
    verificationMethod: [{ id, type, controller, publicKeyMultibase }],
    authentication: [id],
    assertionMethod: [id],
    capabilityInvocation: [id],
    capabilityDelegation: [id],
  };
}

/** The multicodec prefix of a secret key in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
const SECRET_PREFIX = Buffer.from([0x86, 0x26]);

/** A new P-256 secret key, in multibase. */
export function newSecretKey(): string {
  return `z${encodeBase58(Buffer.concat([SECRET_PREFIX, newP256Key().secret]))}`;
}

/** The public key of a P-256 secret key, both in multibase. Undefined if the secret key is damaged. */
export function publicKeyOf(secretKeyMultibase: string): string | undefined {
  try {
    const bytes = Buffer.from(toBeArray(decodeBase58(secretKeyMultibase.slice(1))));
    if (!bytes.subarray(0, 2).equals(SECRET_PREFIX) || bytes.length !== 34) return undefined;
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytes.subarray(2));
    return `z${encodeBase58(Buffer.concat([P256_PUBLIC_PREFIX, pair.getPublicKey(null, 'compressed')]))}`;
  } catch {
    return undefined;
  }
}
