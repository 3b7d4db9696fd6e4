import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { constants as multikey } from '@digitalbazaar/multikey-context';
import * as jsigs from 'jsonld-signatures';
import type { JsonObject } from '../issuance/credential';
import type { ContextLoader } from './derive-credential';
import { proofProblemOf } from './proof-problem';
import { createStrictVerifyCryptosuite } from './strict-verify-cryptosuite';

/** A public key as its issuer publishes it. `id` is absolute. */
export interface IssuerKey {
  id: string;
  controller: string;
  publicKeyMultibase: string;
}

/**
 * Verifies the signatures of a derived credential with a key that is known to be the issuer's. The library's
 * own check of the key's authorisation is not used.
 *
 * @returns the problem as a clause, or undefined if it verifies.
 */
export async function verifySignature(
  derived: JsonObject,
  key: IssuerKey,
  loadContext: ContextLoader,
): Promise<string | undefined> {
  const { id, controller, publicKeyMultibase } = key;
  const published = {
    '@context': multikey.CONTEXT_URL,
    id,
    type: 'Multikey',
    controller,
    publicKeyMultibase,
  };
  const result = await jsigs.verify(derived, {
    suite: new DataIntegrityProof({ cryptosuite: createStrictVerifyCryptosuite() }),
    purpose: new jsigs.purposes.AssertionProofPurpose({
      controller: { id: controller, assertionMethod: [id] },
    }),
    documentLoader: async (url) =>
      url === id ? { contextUrl: null, document: published, documentUrl: url } : loadContext(url),
  });
  return result.verified ? undefined : proofProblemOf(result.error);
}
