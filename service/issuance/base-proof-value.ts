import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * How ecdsa-sd-2023 writes a base proof
 * (https://www.w3.org/TR/vc-di-ecdsa/#base-proof-serialization-functions).
 */
interface BaseProofValue {
  /** What the issuer's key signs. */
  serializeBaseVerifyData: (parts: {
    proofHash: Uint8Array;
    publicKey: Uint8Array;
    mandatoryHash: Uint8Array;
  }) => Uint8Array;
  /** `proofValue`. */
  serializeBaseProofValue: (parts: {
    baseSignature: Uint8Array;
    publicKey: Uint8Array;
    hmacKey: Uint8Array;
    signatures: Uint8Array[];
    mandatoryPointers: string[];
  }) => string;
}

const load = createRequire(__filename);

/** The library's own functions. It does not export them, so that they are loaded by their path. */
export const { serializeBaseVerifyData, serializeBaseProofValue } = load(
  join(dirname(load.resolve('@digitalbazaar/ecdsa-sd-2023-cryptosuite')), 'proofValue.js'),
) as BaseProofValue;
