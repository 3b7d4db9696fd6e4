import { createSignCryptosuite, type SignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import {
  canonicalizeAndGroup,
  createHmac,
  createHmacIdLabelMapFunction,
  hashCanonizedProof,
  hashMandatory,
} from '@digitalbazaar/di-sd-primitives';
import { serializeBaseProofValue, serializeBaseVerifyData } from './base-proof-value';
import { PreparedContexts } from './prepared-contexts';
import { newStatementKey, type StatementKey } from './statement-key';

/**
 * The ecdsa-sd-2023 cryptosuite for an issuer of many documents. It replaces two functions of the library,
 * which support neither prepared contexts nor keys other than WebCrypto's, and makes the same calls for each
 * step. The signed data and the proof equal the library's byte for byte (test/unit/cheaper-signing.test.ts).
 *
 * @param makeStatementKey creates a new key for each credential; tests pass one that is not random.
 */
export function createIssuingCryptosuite(
  mandatoryPointers: string[],
  makeStatementKey: () => StatementKey = newStatementKey,
): SignCryptosuite {
  const contextResolver = new PreparedContexts();
  return {
    ...createSignCryptosuite({ mandatoryPointers }),
    async createVerifyData({ document, proof, documentLoader }) {
      const options = { documentLoader, contextResolver };
      const proofHash = hashCanonizedProof({ document, proof, options });
      // An error in the document is reported before one in the proof.
      proofHash.catch(() => undefined);
      const hmac = await createHmac({ key: null });
      const { groups } = await canonicalizeAndGroup({
        document,
        labelMapFactoryFunction: createHmacIdLabelMapFunction({ hmac }),
        groups: { mandatory: mandatoryPointers },
        options,
      });
      const mandatory = [...groups.mandatory.matching.values()];
      return {
        proofHash: await proofHash,
        mandatoryHash: (await hashMandatory({ mandatory })).mandatoryHash,
        nonMandatory: [...groups.mandatory.nonMatching.values()],
        hmacKey: await hmac.export(),
        mandatoryPointers,
      };
    },
    async createProofValue({ verifyData, dataIntegrityProof }) {
      const { proofHash, mandatoryHash, nonMandatory, hmacKey } = verifyData;
      const { publicKey, sign } = makeStatementKey();
      const signatures = nonMandatory.map((statement) => sign(Buffer.from(statement, 'utf8')));
      const data = serializeBaseVerifyData({ proofHash, publicKey, mandatoryHash });
      const baseSignature = await dataIntegrityProof.signer.sign({ data });
      return serializeBaseProofValue({ baseSignature, publicKey, hmacKey, signatures, mandatoryPointers });
    },
  };
}
