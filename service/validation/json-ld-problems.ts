import * as jsonld from 'jsonld';
import { messageOf } from '../base/errors';
import { buildCredential, type JsonObject } from '../issuance/credential';
import { createDocumentLoader } from '../issuance/document-loader';
import { BILL_OF_LADING_CONTEXT, publishedPath } from '../base/published-files';
import { pointerStep } from '../base/json';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { unsignedContentIn } from '../issuance/signed-content';
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

const documentLoader = createDocumentLoader(CONTEXT_URL);

/**
 * Returns everything that JSON-LD's safe mode would refuse when a credential with this subject is signed.
 * Signing itself reports only the first problem.
 */
export async function jsonLdProblems(credentialSubject: JsonObject): Promise<SubjectProblem[]> {
  const events: jsonld.JsonLdEvent[] = [];
  try {
    const credential = { ...buildCredential({ ...CREDENTIAL, credentialSubject }) };
    await jsonld.toRDF(credential, { documentLoader, eventHandler: ({ event }) => events.push(event) });
    if (events.length === 0) return await unsignedIn(credential);
  } catch (thrown) {
    return [{ pointer: '', code: 'SUBJECT_TERM_UNDEFINED', message: messageOf(thrown) }];
  }
  const problems = events.flatMap((event) => problemsOf(event, credentialSubject));
  return [...new Map(problems.map((problem) => [problem.pointer + problem.message, problem])).values()];
}

/** The content that the contexts leave unsigned. Signing refuses it. */
async function unsignedIn(credential: JsonObject): Promise<SubjectProblem[]> {
  const options = { documentLoader, contextResolver: new PreparedContexts() };
  return (await unsignedContentIn(credential, options)).map(({ pointer, code, problem }) => ({
    pointer: pointer.replace(/^\/credentialSubject/, ''),
    code,
    message: capitalised(problem),
  }));
}

/** JSON-LD reports some mistakes twice, as JSON-LD and again as RDF; the second report is dropped. */
function problemsOf(
  { code, message, details = {} }: jsonld.JsonLdEvent,
  subject: JsonObject,
): SubjectProblem[] {
  const problem = (pointer: string, text: string): SubjectProblem[] => [
    { pointer, code: 'SUBJECT_TERM_UNDEFINED', message: text },
  ];
  if (/^relative (subject|object|predicate|graph) reference$/.test(code)) return [];
  if (code === 'relative @id reference')
    return problem('/id', 'Must be an absolute IRI, such as urn:… or https://…');
  if (code === 'relative @type reference') {
    const type = String(details.type);
    const index = Array.isArray(subject.type) ? subject.type.indexOf(type) : -1;
    const pointer = index < 0 ? '/type' : `/type${pointerStep(index)}`;
    return problem(pointer, `No context of the credential defines the type ${JSON.stringify(type)}`);
  }
  if (typeof details.property === 'string')
    return problem('', `No context of the credential defines ${JSON.stringify(details.property)}`);
  return problem('', message ?? code);
}
