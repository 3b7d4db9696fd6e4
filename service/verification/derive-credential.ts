import { createDiscloseCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import * as jsigs from 'jsonld-signatures';
import { RequestError } from '../base/errors';
import type { JsonObject } from '../issuance/credential';
import { inspectContent } from './inspect-content';
import { checkPointers } from './json-pointers';
import { presentedProof } from './presented-credential';
import { proofProblemOf } from './proof-problem';

/** Loads the context of a URL, in the form that jsonld requires. */
export type ContextLoader = (url: string) => Promise<unknown>;

/** Pointer of the whole document: discloses everything. */
export const EVERYTHING = '';

/**
 * Derives the version of a credential that a holder shows
 * (https://www.w3.org/TR/vc-di-ecdsa/#add-derived-proof-ecdsa-sd-2023). It contains the pointers' targets,
 * everything the issuer made mandatory, and the `id` and `type` of every object on the way.
 *
 * @throws RequestError CREDENTIAL_ALREADY_DERIVED, PROOF_UNSUPPORTED, POINTER_INVALID,
 *   POINTER_MATCHES_NOTHING, or DERIVATION_FAILED if the proof does not belong to the content.
 */
export async function deriveCredential(
  credential: JsonObject,
  pointers: readonly string[],
  documentLoader: ContextLoader,
): Promise<JsonObject> {
  inspectContent(credential);
  const proof = presentedProof(credential);
  if (proof.kind === 'derived') throw alreadyDerived();
  if (proof.kind !== 'base') throw new RequestError('PROOF_UNSUPPORTED', `The credential ${proof.problem}.`);
  checkPointers(credential, pointers);
  try {
    const cryptosuite = createDiscloseCryptosuite({ selectivePointers: [...pointers] });
    return await jsigs.derive<JsonObject>(credential, {
      suite: new DataIntegrityProof({ cryptosuite }),
      purpose: new jsigs.purposes.AssertionProofPurpose(),
      documentLoader,
    });
  } catch (cause) {
    const message = `No version can be derived from the credential: ${proofProblemOf(cause)}.`;
    throw new RequestError('DERIVATION_FAILED', message, { cause });
  }
}

function alreadyDerived(): RequestError {
  const remedy = 'Use the credential as the issuer issued it: only from that one can a version be derived.';
  const message = `This credential is already a derived version. ${remedy}`;
  return new RequestError('CREDENTIAL_ALREADY_DERIVED', message, { remedy });
}
