import { ChainError, type ErrorCode } from '../../../service/base/errors';
import type { FetchedJson } from '../../../service/did/fetched-json';
import type { DidResolution, PublishedDidDocument } from '../../../service/did/resolve-did-web';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import type { TokenState } from '../../../service/registry/read-token-state';
import type { VerificationSources } from '../../../service/verification/verify-credential';
import type { TestIssuer } from './test-issuer';

/** Stand-ins for the network, the chain and the time of a verification. Each can be replaced. */
export interface FakeSources extends VerificationSources {
  /** The URLs that were fetched. */
  asked: string[];
}

/** A token that is in its title escrow. */
export const IN_ESCROW: TokenState = {
  state: 'in escrow',
  block: 12,
  titleEscrow: '0x75537828f2ce51be7289709686a69cbfdbb714f1',
  beneficiary: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  holder: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  nominee: undefined,
  previousBeneficiary: undefined,
  previousHolder: undefined,
  isPaused: false,
};

/**
 * Sources in which an issuer's DID resolves, its token is in escrow, and it is February 2026. `changes`
 * replaces some.
 */
export function fakeSources(issuer: TestIssuer, changes: Partial<VerificationSources> = {}): FakeSources {
  const asked: string[] = [];
  const { fetchJson = notThere } = changes;
  return {
    knownContexts: createDocumentLoader(issuer.contextUrl),
    resolveDid: async (did) => resolved(did, issuer.didDocument),
    readToken: async () => IN_ESCROW,
    clock: { now: () => Date.parse('2026-02-01T00:00:00Z') },
    ...changes,
    fetchJson: async (url) => {
      asked.push(url.href);
      return fetchJson(url);
    },
    asked,
  };
}

/** A DID that resolved to this document. */
export function resolved(did: string, document: object): DidResolution {
  const url = `https://${did.slice('did:web:'.length)}/.well-known/did.json`;
  const contentType = 'application/did+json';
  return { kind: 'resolved', url, contentType, document: document as PublishedDidDocument };
}

/** A reader of tokens that fails with this code. */
export function failingWith(code: ErrorCode, message: string = code): VerificationSources['readToken'] {
  return async () => {
    throw new ChainError(code, message);
  };
}

async function notThere(url: URL): Promise<FetchedJson> {
  return { kind: 'refused', url: url.href, problem: 'answers 404' };
}
