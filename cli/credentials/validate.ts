import { isJsonObject, type JsonObject } from '../../service/issuance/credential';
import { examineContext } from '../../service/validation/examine-context';
import { shownOf } from '../../service/validation/problems';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { documentIn } from '../../service/verification/presented-credential';
import type { Answer } from '../answer';
import { bytesOf, readJsonInput } from '../files/user-file';

/** The kinds of JSON that are recognised in a file. */
const TAKEN_FOR = {
  credentialSubject: 'a credentialSubject',
  request: 'the body of a POST /create: its credentialSubject was checked',
  credential: 'a credential: its credentialSubject was checked',
  answer: 'an answer of the service: the credentialSubject in it was checked',
} as const;

/**
 * Validates the Bill of Lading in a file (`-`: standard input) strictly. Pointers are relative to the file.
 *
 * @param options.context a file with a context of the issuer's own, which is examined first.
 * @throws ConfigurationError if a file cannot be read or is not JSON.
 */
export async function validateFile(path: string, { context }: { context?: string }): Promise<Answer> {
  const { takenFor, pointer, subject } = findSubject(await readJsonInput(path));
  const own = context === undefined ? undefined : await bytesOf(context);
  const unusable = (own ? await examineContext(own) : []).map((reason) => {
    return { pointer: '', code: 'CONTEXT_UNUSABLE' as const, message: `${context} ${reason}` };
  });
  const subjectProblems =
    unusable.length > 0
      ? []
      : await validateBillOfLading(subject, own && (JSON.parse(new TextDecoder().decode(own)) as JsonObject));
  const found = [...unusable, ...subjectProblems.map((one) => ({ ...one, pointer: pointer + one.pointer }))];
  const problems = shownOf(found);
  const isValid = problems.length === 0;
  const lines = problems.map(
    (problem) => `${problem.pointer || '(the whole)'}  ${problem.message} [${problem.code}]`,
  );
  const count = found.length === 1 ? '1 problem' : `${found.length} problems`;
  const hidden = found.length > problems.length ? `, of which ${problems.length} are shown` : '';
  return {
    lines: [`taken for ${TAKEN_FOR[takenFor]}`, ...lines, isValid ? 'valid' : `not valid: ${count}${hidden}`],
    json: { valid: isValid, takenFor, count: found.length, problems },
    isYes: isValid,
  };
}

/** The subject in a file. `pointer`: its JSON pointer within the file. */
interface FoundSubject {
  takenFor: keyof typeof TAKEN_FOR;
  pointer: string;
  subject: unknown;
}

/**
 * Finds the credentialSubject in the JSON that an author may have: the subject alone, the body of a POST
 * /create, an answer with a credential, or a whole credential. JSON without the marks of the others is taken
 * for the subject alone.
 *
 * @throws RequestError CREDENTIAL_INVALID for a document of another kind.
 */
export function findSubject(value: unknown): FoundSubject {
  const { pointer, document } = documentIn(value);
  const fields = new Map(Object.entries(isJsonObject(document) ? document : {}));
  const inside = { pointer: `${pointer}/credentialSubject`, subject: fields.get('credentialSubject') };
  if (pointer !== '') return { takenFor: 'answer', ...inside };
  if (isCredential(fields)) return { takenFor: 'credential', ...inside };
  if (['credentialSubject', 'owner', 'holder'].some((name) => fields.has(name)))
    return { takenFor: 'request', ...inside };
  return { takenFor: 'credentialSubject', pointer, subject: value };
}

function isCredential(fields: ReadonlyMap<string, unknown>): boolean {
  return (
    [fields.get('type')].flat().includes('VerifiableCredential') ||
    ['issuer', 'proof', 'credentialStatus'].some((name) => fields.has(name)) ||
    (fields.has('@context') && fields.has('credentialSubject'))
  );
}
