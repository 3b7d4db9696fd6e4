// Functions of packages without types that only tests call.

declare module '@digitalbazaar/ecdsa-sd-2023-cryptosuite' {
  export function createDiscloseCryptosuite(options?: { selectivePointers?: string[] }): object;
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
