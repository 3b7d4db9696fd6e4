import { messageOf } from '../base/errors';
import { BILL_OF_LADING_CONTEXT, publishedPath } from '../base/published-files';
import { buildCredential, type JsonObject, type UnsignedCredential } from '../issuance/credential';
import { createDocumentLoader, type DocumentLoader } from '../issuance/document-loader';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { unsignedContentIn } from '../issuance/signed-content';
import { undefinedContentIn } from '../issuance/undefined-content';
import { capitalised, type SubjectProblem } from './problems';

const ISSUER = 'https://issuer.example';
const CONTEXT_URL = ISSUER + publishedPath(BILL_OF_LADING_CONTEXT);
/** Not that of ours: jsonld keeps what it read of ours for as long as the process runs. */
const OWN_CONTEXT_URL = ISSUER + publishedPath('own-bill-of-lading-v1.json');

/** A placeholder credential around the subject. Only its contexts matter here. */
const CREDENTIAL = {
  id: 'urn:uuid:00000000-0000-7000-8000-000000000000',
  issuedAt: new Date(0),
  issuer: 'did:web:issuer.example',
  documentType: 'BILL_OF_LADING',
  rendererUrl: 'https://renderer.example',
  currency: 'ETH',
  chainId: 1,
  tokenRegistry: '0x0000000000000000000000000000000000000001',
} as const;

/** A credential with this subject, and without a proof. `isOwn`: under the context of the issuer's own. */
export function credentialAround(credentialSubject: JsonObject, isOwn: boolean): UnsignedCredential {
  const documentContextUrl = isOwn ? OWN_CONTEXT_URL : CONTEXT_URL;
  return buildCredential({ ...CREDENTIAL, documentContextUrl, credentialSubject });
}

const known = createDocumentLoader(CONTEXT_URL);

/** Loads the contexts of such a credential. `own`: the content of the issuer's own. */
export function loaderWith(own?: JsonObject): DocumentLoader {
  if (own === undefined) return known;
  // Without the tag, so that jsonld keeps nothing from one context for the next.
  const loaded = { contextUrl: null, document: own, documentUrl: OWN_CONTEXT_URL };
  return async (url) => (url === OWN_CONTEXT_URL ? loaded : known(url));
}

/**
 * Returns everything that signing refuses because of what the contexts make of it.
 *
 * @param own the issuer's context, instead of ours.
 */
export async function jsonLdProblems(subject: JsonObject, own?: JsonObject): Promise<SubjectProblem[]> {
  const credential = { ...credentialAround(subject, own !== undefined) };
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
