import { constants as multikey } from '@digitalbazaar/multikey-context';
import { constants as did } from 'did-context';
import type { DidKeyPair } from '../../service/base/did-key-pair';

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

/** The key that a did.json file publishes. Undefined if the file has another form. */
export function publishedKeyOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Partial<DidDocument>).verificationMethod?.[0]?.publicKeyMultibase;
  } catch {
    return undefined;
  }
}
