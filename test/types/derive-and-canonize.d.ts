// Functions of packages without types that only tests call.

declare module '@digitalbazaar/ecdsa-sd-2023-cryptosuite' {
  export type Cryptosuite = object;
  export function createDiscloseCryptosuite(options?: { selectivePointers?: string[] }): object;
}

declare module '@digitalbazaar/ecdsa-multikey' {
  import type { DidKeyPair } from '../../service/base/did-key-pair';
  export interface KeyPair {
    verifier(): { verify(options: { data: Uint8Array; signature: Uint8Array }): Promise<boolean> };
    export(options: {
      publicKey?: boolean;
      secretKey?: boolean;
      includeContext?: boolean;
    }): Promise<Omit<DidKeyPair, 'secretKeyMultibase'> & { secretKeyMultibase?: string }>;
  }
  export function generate(options: { id?: string; controller?: string; curve: 'P-256' }): Promise<KeyPair>;
}

declare module 'jsonld-signatures' {
  import type { DataIntegrityProof } from '@digitalbazaar/data-integrity';
  export function derive<T>(
    document: object,
    options: {
      suite: DataIntegrityProof;
      purpose: object;
      documentLoader: (url: string) => Promise<unknown>;
    },
  ): Promise<T>;
}

declare module 'jsonld' {
  export function canonize(document: object, options: object): Promise<string>;
}

declare module '@digitalbazaar/di-sd-primitives' {
  export function createLabelMapFunction(options: { labelMap: Map<string, string> }): Promise<object>;
  export function labelReplacementCanonicalizeJsonLd(options: object): Promise<string[]>;
}

// Tests read and write proofs with it, as an attacker would.
declare module '*/ecdsa-sd-2023-cryptosuite/lib/proofValue.js' {
  import type { DisclosureProof } from '*/ecdsa-sd-2023-cryptosuite/lib/proofValue.js';
  export function parseDisclosureProofValue(options: { proof: object }): DisclosureProof;
}
