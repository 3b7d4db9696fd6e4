import { createSignCryptosuite, type SignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import {
  createHmac,
  createHmacIdLabelMapFunction,
  hashCanonizedProof,
  hashMandatory,
  labelReplacementCanonicalizeNQuads,
  relabelBlankNodes,
  toDeskolemizedNQuads,
} from '@digitalbazaar/di-sd-primitives';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createPrivateKey, sign } from 'node:crypto';
import { cut, RequestError } from '../base/errors';
import { newP256Key, P256_BYTES, P256_PUBLIC_PREFIX } from '../base/did-key-pair';
import type * as proofValues from '*/ecdsa-sd-2023-cryptosuite/lib/proofValue.js';
import type { JsonObject } from './credential';
import { PreparedContexts } from './prepared-contexts';
import { isPart, selectParts } from './select-parts';
import { markObjects, unsignedContentIn } from './signed-content';

/**
 * The ecdsa-sd-2023 cryptosuite for an issuer of many documents. It replaces two functions of the library,
 * which support neither prepared contexts nor keys other than WebCrypto's. The statements are those of the
 * document with an id for each object; the library makes the same from a copy that it expands and compacts.
 * The signed data and the proof equal the library's byte for byte (test/unit/cheaper-signing.test.ts).
 *
 * @param makeStatementKey creates a new key for each credential; tests pass one that is not random.
 * @throws RequestError for content that the signature would not cover.
 */
export function createIssuingCryptosuite(
  mandatoryPointers: string[],
  makeStatementKey: () => StatementKey = newStatementKey,
  contextResolver = new PreparedContexts(),
): SignCryptosuite {
  return {
    ...createSignCryptosuite({ mandatoryPointers }),
    async createVerifyData({ document, proof, documentLoader }) {
      const options = { documentLoader, contextResolver };
      const proofHash = hashCanonizedProof({ document, proof, options });
      // An error in the document is reported before one in the proof.
      proofHash.catch(() => undefined);
      const marking = markObjects(document as JsonObject, options);
      const [unsigned] = await unsignedContentIn(document as JsonObject, options, marking);
      if (unsigned) throw new RequestError(unsigned.code, `${cut(unsigned.pointer)} ${unsigned.problem}.`);
      const { marked, expanded } = await marking;
      const hmac = await createHmac({ key: null });
      const { labelMap, nquads } = await labelReplacementCanonicalizeNQuads({
        nquads: await toDeskolemizedNQuads({
          document: expanded,
          options: { ...options, skipExpansion: true },
        }),
        labelMapFactoryFunction: createHmacIdLabelMapFunction({ hmac }),
        options,
      });
      const missing = mandatoryPointers.find((pointer) => !isPart(marked, pointer));
      if (missing !== undefined) throw new Error(`The mandatory pointer ${missing} matches nothing.`);
      // The types of the objects on the way to a mandatory part are mandatory too.
      const parts = selectParts(marked, mandatoryPointers);
      const isAny = mandatoryPointers.length > 0;
      const selected = isAny ? await toDeskolemizedNQuads({ document: parts, options }) : [];
      const mandatory = new Set(relabelBlankNodes({ nquads: selected, labelMap }));
      return {
        proofHash: await proofHash,
        mandatoryHash: (await hashMandatory({ mandatory: nquads.filter((one) => mandatory.has(one)) }))
          .mandatoryHash,
        nonMandatory: nquads.filter((one) => !mandatory.has(one)),
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

const load = createRequire(__filename);

/** The library's own functions, loaded by path because the library does not export them. */
export const PROOF_VALUES = load(
  join(dirname(load.resolve('@digitalbazaar/ecdsa-sd-2023-cryptosuite')), 'proofValue.js'),
) as typeof proofValues;
const { serializeBaseVerifyData, serializeBaseProofValue } = PROOF_VALUES;

/**
 * The key of one credential. It signs each of the credential's statements and is then discarded
 * (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023).
 */
export interface StatementKey {
  /** In Multikey form: two bytes for P-256, then the compressed point. */
  publicKey: Uint8Array;
  /** ECDSA with SHA-256: r and s, 32 bytes each. */
  sign: (data: Uint8Array) => Uint8Array;
}

/**
 * Creates a key with node:crypto. The suite's own key is a WebCrypto key: each signature, 40 for a small
 * document, is then a task for the thread pool and two promises, which cost more than the P-256 operation
 * itself.
 *
 * Measured (medians of 200 interleaved rounds): a document of 3 packages takes 0.59 of the library's time
 * with this alone. One of 300 packages, which WebCrypto spreads over the processors, takes 0.94 (24 rounds)
 * when these are idle; the signing pool uses them.
 */
export function newStatementKey(): StatementKey {
  const { secret, point, compressed } = newP256Key();
  const x = point.toString('base64url', 1, 1 + P256_BYTES);
  const y = point.toString('base64url', 1 + P256_BYTES);
  const jwk = { kty: 'EC', crv: 'P-256', x, y, d: secret.toString('base64url') };
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return {
    publicKey: Buffer.concat([P256_PUBLIC_PREFIX, compressed]),
    sign: (data) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
  };
}
