import { verify } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { createVerifyCryptosuite, type VerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import {
  canonicalize,
  canonicalizeAndGroup,
  createHmac,
  createHmacIdLabelMapFunction,
  hashMandatory,
  relabelBlankNodes,
  stripBlankNodePrefixes,
  toDeskolemizedNQuads,
  type LabelMap,
} from '@digitalbazaar/di-sd-primitives';
import { P256_PUBLIC_PREFIX, p256PublicKey } from '../base/did-key-pair';
import { RequestError } from '../base/errors';
import type { JsonObject } from '../issuance/credential';
import { PROOF_VALUES } from '../issuance/issuing-cryptosuite';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { selectParts } from '../issuance/select-parts';
import { markObjects } from '../issuance/signed-content';

/** Loads the context of a URL, in the form that jsonld requires. */
export type ContextLoader = (url: string) => Promise<unknown>;

const { parseBaseProofValue, serializeDisclosureProofValue } = PROOF_VALUES;

/**
 * Makes a derived version (https://www.w3.org/TR/vc-di-ecdsa/#creatediscloseddata), and verifies it with the
 * proof's own key for statements.
 *
 * The standard applies the pointers to a copy that JSON-LD has expanded and compacted. There a list of one
 * value is a plain value, null is missing, and names may be others. Here the holder's pointers select parts
 * of the document itself, whose objects have ids by then, so that the statements are those of the whole. The
 * issuer's mandatory pointers are applied to the copy, because the signatures follow from them.
 *
 * @param credential has a base proof.
 * @param pointers each matches a part of the credential.
 * @throws RequestError DERIVATION_FAILED if no version can show only these parts; JsonLdError, and
 *   the library's errors if the content is proven to be another one than was signed.
 */
export async function disclose(
  credential: JsonObject,
  pointers: readonly string[],
  load: ContextLoader,
): Promise<JsonObject> {
  const drafted = await draft(credential, pointers, load);
  const { version, proof, mandatory, others, signatures, publicKey } = drafted;
  // A verifier must find the same statements in the version, and their signatures must be right.
  const suite = createStrictVerifyCryptosuite();
  const presented = { cryptosuite: suite, document: version, proof, documentLoader: load };
  const { nonMandatory, ...found } = await suite.createVerifyData(presented);
  const { mandatoryHash } = await hashMandatory({ mandatory });
  const isSame =
    isDeepStrictEqual(nonMandatory, others) && Buffer.compare(found.mandatoryHash, mandatoryHash) === 0;
  if (!isSame) throw notSelectable();
  if (!areSigned(nonMandatory, signatures, publicKey)) throw new Error('Invalid signature');
  return { ...version, proof };
}

/**
 * A version before it is verified. Of a large document each copy of the statements takes 100 MB.
 *
 * @returns `others`: the statements of the version that are not mandatory, with their `signatures` by the key
 *   of the proof.
 */
async function draft(credential: JsonObject, pointers: readonly string[], documentLoader: ContextLoader) {
  const { proof: issued, ...document } = credential as JsonObject & { proof: JsonObject };
  const base = parseBaseProofValue({ proof: issued });
  const options = { documentLoader, contextResolver: new PreparedContexts() };
  const { marked } = await markObjects(document, options);
  const hmac = await createHmac({ key: base.hmacKey });
  const { groups, labelMap, nquads } = await canonicalizeAndGroup({
    document: marked,
    labelMapFactoryFunction: createHmacIdLabelMapFunction({ hmac }),
    groups: { mandatory: base.mandatoryPointers },
    options,
  });
  const mandatory = new Set(groups.mandatory.matching.values());
  /** Each has a signature of its own. */
  const others = [...groups.mandatory.nonMatching.values()];
  if (others.length !== base.signatures.length) throw new Error('Signature count differs');

  const wanted = [...base.mandatoryPointers, ...pointers];
  const selected = toDeskolemizedNQuads({ document: selectParts(marked, wanted), options });
  const shown = await selected.catch(() => Promise.reject(notSelectable()));
  const chosen = new Set(relabelBlankNodes({ nquads: shown, labelMap }));
  const disclosed = nquads.filter((statement) => chosen.has(statement));
  if (disclosed.length < chosen.size || [...mandatory].some((one) => !chosen.has(one))) throw notSelectable();
  const signatures = base.signatures.filter((_, index) => chosen.has(others[index] ?? ''));
  const canonicalIdMap: LabelMap = new Map();
  await canonicalize(shown.join(''), { ...options, inputFormat: 'application/n-quads', canonicalIdMap });
  const labels = [...stripBlankNodePrefixes(canonicalIdMap)];
  const proof = { ...issued };
  delete proof['@context'];
  proof.proofValue = serializeDisclosureProofValue({
    ...base,
    signatures,
    labelMap: new Map(labels.map(([own, label]) => [label, labelMap.get(own) ?? ''])),
    mandatoryIndexes: [...disclosed.keys()].filter((index) => mandatory.has(disclosed[index] ?? '')),
  });

  return {
    version: selectParts(document, wanted),
    proof,
    mandatory: [...mandatory],
    others: others.filter((statement) => chosen.has(statement)),
    signatures,
    publicKey: base.publicKey,
  };
}

function notSelectable(): RequestError {
  const remedy = 'Disclose a larger part, or the whole with an empty pointer.';
  const reason = 'these parts belong to a value that is signed as one, such as a JSON value';
  const message = `No version can be derived: ${reason}. ${remedy}`;
  return new RequestError('DERIVATION_FAILED', message, { remedy });
}

/** Whether each statement has its signature, by a Multikey: two bytes for P-256, the compressed point. */
function areSigned(
  statements: readonly string[],
  signatures: readonly Uint8Array[],
  multikey: Uint8Array,
): boolean {
  const key = p256PublicKey(multikey.subarray(P256_PUBLIC_PREFIX.length));
  const options = { key, dsaEncoding: 'ieee-p1363' } as const;
  return statements.every((statement, index) =>
    verify('sha256', Buffer.from(statement), options, signatures[index] ?? Buffer.of()),
  );
}

export const REPEATED_STATEMENT =
  'The proof uses a signed statement more than once: an object was duplicated or divided';

/**
 * The cryptosuite that verifies derived ecdsa-sd-2023 proofs, but refuses proofs that repeat a statement.
 *
 * Version 3.4.1 takes the labels of blank nodes from the unsigned part of the proof and does not check that
 * they differ. Two objects can be given the label of one that was signed, so that a package without an id
 * appears in the credential twice (docs/reports/ecdsa-sd-2023-duplicated-objects.md). Objects that refer to
 * it then make the same statement twice, which a set of RDF statements never contains.
 */
export function createStrictVerifyCryptosuite(): VerifyCryptosuite {
  const suite = createVerifyCryptosuite();
  return {
    ...suite,
    async createVerifyData(options) {
      const data = await suite.createVerifyData(options);
      if (new Set(data.nonMandatory).size === data.nonMandatory.length) return data;
      throw new Error(`${REPEATED_STATEMENT}.`);
    },
  };
}
