import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * The serialisation of an ecdsa-sd-2023 base proof
 * (https://www.w3.org/TR/vc-di-ecdsa/#base-proof-serialization-functions).
 */
interface BaseProofValue {
  /** Returns the bytes that the issuer's key signs. */
  serializeBaseVerifyData: (parts: {
    proofHash: Uint8Array;
    publicKey: Uint8Array;
    mandatoryHash: Uint8Array;
  }) => Uint8Array;
  /** Returns the `proofValue`. */
  serializeBaseProofValue: (parts: {
    baseSignature: Uint8Array;
    publicKey: Uint8Array;
    hmacKey: Uint8Array;
    signatures: Uint8Array[];
    mandatoryPointers: string[];
  }) => string;
}

const load = createRequire(__filename);

/** The library's own functions, loaded by path because the library does not export them. */
export const { serializeBaseVerifyData, serializeBaseProofValue } = load(
  join(dirname(load.resolve('@digitalbazaar/ecdsa-sd-2023-cryptosuite')), 'proofValue.js'),
) as BaseProofValue;
