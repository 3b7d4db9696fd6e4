import { messageOf } from '../base/errors';
import { BILL_OF_LADING_CONTEXT, publishedPath } from '../base/published-files';
import { buildCredential, type JsonObject, type UnsignedCredential } from '../issuance/credential';
import { createDocumentLoader, type DocumentLoader } from '../issuance/document-loader';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { unsignedContentIn } from '../issuance/signed-content';
import { undefinedContentIn } from '../issuance/undefined-content';
import { capitalised, type SubjectProblem } from './problems';

const CONTEXT_URL = `https://issuer.example${publishedPath(BILL_OF_LADING_CONTEXT)}`;

/** A placeholder credential around the subject. Only its contexts matter here. */
const CREDENTIAL = {
  id: 'urn:uuid:00000000-0000-7000-8000-000000000000',
  issuedAt: new Date(0),
  issuer: 'did:web:issuer.example',
  documentType: 'BILL_OF_LADING',
  documentContextUrl: CONTEXT_URL,
  rendererUrl: 'https://renderer.example',
  currency: 'ETH',
  chainId: 1,
  tokenRegistry: '0x0000000000000000000000000000000000000001',
} as const;

/** A credential with this subject, and without a proof. */
export function credentialAround(credentialSubject: JsonObject): UnsignedCredential {
  return buildCredential({ ...CREDENTIAL, credentialSubject });
}

const known = createDocumentLoader(CONTEXT_URL);

/** Loads the contexts of such a credential. `own`: the content of the last one, instead of that of ours. */
export function loaderWith(own?: JsonObject): DocumentLoader {
  if (own === undefined) return known;
  // Without the tag, so that jsonld keeps nothing from one context for the next.
  const loaded = { contextUrl: null, document: own, documentUrl: CONTEXT_URL };
  return async (url) => (url === CONTEXT_URL ? loaded : known(url));
}

/**
 * Returns everything that signing refuses because of what the contexts make of it.
 *
 * @param own the issuer's context, instead of ours.
 */
export async function jsonLdProblems(subject: JsonObject, own?: JsonObject): Promise<SubjectProblem[]> {
  const credential = { ...credentialAround(subject) };
  const options = { documentLoader: loaderWith(own), contextResolver: new PreparedContexts() };
  try {
    const undefinedContent = await undefinedContentIn(credential, options);
    const found =
      undefinedContent.length > 0 ? undefinedContent : await unsignedContentIn(credential, options);
    return found.map(({ pointer, code, problem }) => ({
      pointer: pointer.replace(/^\/credentialSubject/, ''),
      code,
      message: capitalised(problem),
    }));
  } catch (thrown) {
    return [{ pointer: '', code: 'SUBJECT_TERM_UNDEFINED', message: messageOf(thrown) }];
  }
}
