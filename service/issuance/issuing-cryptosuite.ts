import { createSignCryptosuite, type SignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import {
  canonicalizeAndGroup,
  createHmac,
  createHmacIdLabelMapFunction,
  hashCanonizedProof,
  hashMandatory,
} from '@digitalbazaar/di-sd-primitives';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createPrivateKey, sign } from 'node:crypto';
import { newP256Key, P256_BYTES, P256_PUBLIC_PREFIX } from '../base/did-key-pair';
import ContextResolver, {
  type ActiveContext,
  type ProcessedContext,
  type ResolvedContext,
} from 'jsonld/lib/ContextResolver.js';

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
const { serializeBaseVerifyData, serializeBaseProofValue } = load(
  join(dirname(load.resolve('@digitalbazaar/ecdsa-sd-2023-cryptosuite')), 'proofValue.js'),
) as BaseProofValue;

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

/**
 * The number of active contexts for which a local context keeps its outcome. A Bill of Lading needs three.
 * The limit keeps unusual nesting from filling the memory.
 */
const MOST_OUTCOMES = 32;

/**
 * Resolves contexts for jsonld 9 (its option `contextResolver`) and keeps their processed outcomes from
 * document to document.
 *
 * jsonld keeps outcomes by the identity of the active context. It clones that context, with every term,
 * whenever a typed object begins or ends, so it never finds the outcomes of nested contexts and processes
 * them anew for each object. Cloning, processing and the resulting garbage collection take most of a
 * signature's time. Here the end of a typed object returns the identical context from before it. Clones share
 * their terms, which never change once they are defined. A clone that only marks the beginning of a typed
 * object is identified by its original.
 *
 * Measured (medians of 200 interleaved rounds): a document of 3 packages takes 0.32 of the library's time
 * with this alone, one of 30 packages 0.48, of 300 packages 0.52 (24 rounds).
 *
 * Nothing else differs: the contexts are complete, jsonld does the processing, and it keeps safe mode's
 * errors with each outcome and raises them again. This class changes `ResolvedContext.cache` and the methods
 * `clone` and `revertToPreviousContext` of its own contexts only, so other users of jsonld in the process are
 * not affected.
 */
export class PreparedContexts extends ContextResolver {
  constructor() {
    super({ sharedCache: new Map() });
  }

  override async resolve(options: object): Promise<ResolvedContext[]> {
    const resolved = await super.resolve(options);
    for (const context of resolved) {
      if (!(context.cache instanceof Outcomes)) context.cache = new Outcomes();
    }
    return resolved;
  }
}

/** The outcomes of one local context, by the active context in which it was processed. */
class Outcomes {
  private readonly byContext = new Map<ActiveContext, ProcessedContext>();
  /** Outcomes for typed objects, by the context around them. */
  private readonly byOuterContext = new Map<ActiveContext, ProcessedContext>();

  get(active: ActiveContext): ProcessedContext | undefined {
    const outer = outerOf(active);
    return outer ? this.byOuterContext.get(outer) : this.byContext.get(active);
  }

  set(active: ActiveContext, processed: ProcessedContext): void {
    Object.assign(processed.context, { clone: cloneSharingTerms, revertToPreviousContext: revert });
    const outer = outerOf(active);
    const outcomes = outer ? this.byOuterContext : this.byContext;
    if (outcomes.size >= MOST_OUTCOMES) outcomes.clear();
    outcomes.set(outer ?? active, processed);
  }
}

const COPIED_IF_SET = ['@base', '@language', '@vocab'] as const;

const clonedFrom = new WeakMap<ActiveContext, ActiveContext>();

/**
 * The context around a typed object, if `active` is only the copy that jsonld makes before it processes the
 * type's context.
 */
function outerOf(active: ActiveContext): ActiveContext | undefined {
  const { previousContext } = active;
  return previousContext && clonedFrom.get(active) === previousContext ? previousContext : undefined;
}

/**
 * Replaces jsonld's `clone`. The definitions of the terms and the previous context are shared instead of
 * copied.
 */
function cloneSharingTerms(this: ActiveContext): ActiveContext {
  const child: ActiveContext = {
    mappings: new Map(this.mappings),
    clone: this.clone,
    inverse: null,
    getInverse: this.getInverse,
    protected: { ...this.protected },
    revertToPreviousContext: this.revertToPreviousContext,
  };
  if (this.previousContext) child.previousContext = this.previousContext;
  for (const key of COPIED_IF_SET) if (key in this) Object.assign(child, { [key]: this[key] });
  clonedFrom.set(child, this);
  return child;
}

function revert(this: ActiveContext): ActiveContext {
  return this.previousContext ?? this;
}
