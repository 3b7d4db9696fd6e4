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
 * The ecdsa-sd-2023 cryptosuite for an issuer of many documents. It takes the place of the library's two
 * functions that know neither contexts that are prepared nor another key than one of WebCrypto, and calls for
 * each of their steps what they call. What it signs, and the proof that it makes, are the library's to the
 * byte (test/unit/cheaper-signing.test.ts).
 *
 * @param makeStatementKey a new key for each credential; tests give one that is not random.
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
      // What is wrong with the document is said first.
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
