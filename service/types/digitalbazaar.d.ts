// The packages of Digital Bazaar come without types: these are the parts that the project uses.

declare module '@digitalbazaar/*-context' {
  export const contexts: Map<string, object>;
  export const constants: { CONTEXT_URL: string };
}

declare module 'did-context' {
  export const contexts: Map<string, object>;
  export const constants: { DID_CONTEXT_URL: string };
}

declare module '@digitalbazaar/ecdsa-multikey' {
  export interface Signer {
    id: string;
    algorithm: string;
    sign(options: { data: Uint8Array }): Promise<Uint8Array>;
  }
  export interface KeyPair {
    signer(): Signer;
  }
  /** The key is in Multikey form. */
  export function from(key: object): Promise<KeyPair>;
}

declare module '@digitalbazaar/ecdsa-sd-2023-cryptosuite' {
  import type { Signer } from '@digitalbazaar/ecdsa-multikey';
  /**
   * The signed data: the hashes of the proof's options and of the mandatory statements, and the other
   * statements.
   */
  export interface SignData {
    proofHash: Uint8Array;
    mandatoryHash: Uint8Array;
    nonMandatory: string[];
    hmacKey: Uint8Array;
    mandatoryPointers: string[];
  }
  /** The functions that `DataIntegrityProof` calls, with their arguments. */
  export interface SignCryptosuite {
    name: string;
    createVerifyData(options: {
      cryptosuite: object;
      document: object;
      proof: object;
      documentLoader: (url: string) => Promise<unknown>;
    }): Promise<SignData>;
    createProofValue(options: {
      verifyData: SignData;
      dataIntegrityProof: { signer: Signer };
    }): Promise<string>;
  }
  export function createSignCryptosuite(options?: { mandatoryPointers?: string[] }): SignCryptosuite;
  /**
   * `nonMandatory` holds the statements as they are verified, with the labels that the proof gives their
   * blank nodes.
   */
  export interface VerifyCryptosuite {
    createVerifyData(options: object): Promise<{ nonMandatory: string[]; mandatoryHash: Uint8Array }>;
  }
  export function createVerifyCryptosuite(): VerifyCryptosuite;
}

declare module '@digitalbazaar/data-integrity' {
  import type { Signer } from '@digitalbazaar/ecdsa-multikey';
  export class DataIntegrityProof {
    constructor(options: { signer?: Signer; date?: string; cryptosuite: object });
  }
}

declare module 'jsonld-signatures' {
  import type { DataIntegrityProof } from '@digitalbazaar/data-integrity';
  interface Options {
    suite: DataIntegrityProof;
    purpose: object;
    documentLoader: (url: string) => Promise<unknown>;
  }
  export interface VerificationResult {
    verified: boolean;
    error?: { errors?: Error[] } & Error;
  }
  export function sign<T>(document: object, options: Options): Promise<T>;
  export function verify(document: object, options: Options): Promise<VerificationResult>;
  /** The controller is asked for with the document loader unless it is given. */
  export const purposes: {
    AssertionProofPurpose: new (options?: {
      controller: { id: string; assertionMethod: string[] };
    }) => object;
  };
}

declare module '@digitalbazaar/di-sd-primitives' {
  export type LabelMap = Map<string, string>;
  export function canonicalize(document: object | string, options: object): Promise<string>;
  export function stripBlankNodePrefixes(map: LabelMap): LabelMap;
  interface Hmac {
    export(): Promise<Uint8Array>;
  }
  export function createHmac(options: { key: Uint8Array | null }): Promise<Hmac>;
  export function createHmacIdLabelMapFunction(options: { hmac: Hmac }): object;
  export function toDeskolemizedNQuads(options: { document: unknown; options: object }): Promise<string[]>;
  export function labelReplacementCanonicalizeNQuads(options: {
    nquads: string[];
    labelMapFactoryFunction: object;
    options: object;
  }): Promise<{ labelMap: LabelMap; nquads: string[] }>;
  export function relabelBlankNodes(options: { nquads: string[]; labelMap: LabelMap }): string[];
  export function hashCanonizedProof(options: {
    document: object;
    proof: object;
    options: object;
  }): Promise<Uint8Array>;
  export function hashMandatory(options: { mandatory: string[] }): Promise<{ mandatoryHash: Uint8Array }>;
  /** The statements by their index in the canonical order. */
  export interface Group {
    matching: Map<number, string>;
    nonMatching: Map<number, string>;
  }
  export function canonicalizeAndGroup<Name extends string>(options: {
    document: object;
    labelMapFactoryFunction: object;
    groups: Record<Name, string[]>;
    options: object;
  }): Promise<{ groups: Record<Name, Group>; labelMap: LabelMap; nquads: string[] }>;
}

// Not exported by the package (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023-functions). Keys are in Multikey
// form, signatures of 64 bytes.
declare module '*/ecdsa-sd-2023-cryptosuite/lib/proofValue.js' {
  interface Proof {
    baseSignature: Uint8Array;
    publicKey: Uint8Array;
    signatures: Uint8Array[];
  }
  export interface BaseProof extends Proof {
    hmacKey: Uint8Array;
    mandatoryPointers: string[];
  }
  export interface DisclosureProof extends Proof {
    labelMap: Map<string, string>;
    mandatoryIndexes: number[];
  }
  /** Returns the bytes that the issuer's key signs. */
  export function serializeBaseVerifyData(parts: {
    proofHash: Uint8Array;
    publicKey: Uint8Array;
    mandatoryHash: Uint8Array;
  }): Uint8Array;
  /** The serialised proof is a `proofValue`. */
  export function parseBaseProofValue(options: { proof: object }): BaseProof;
  export function serializeBaseProofValue(proof: BaseProof): string;
  export function serializeDisclosureProofValue(proof: DisclosureProof): string;
}
