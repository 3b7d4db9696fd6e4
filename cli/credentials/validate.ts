import { isJsonObject } from '../../service/issuance/credential';
import { shownOf } from '../../service/validation/problems';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { documentIn } from '../../service/verification/presented-credential';
import type { Answer } from '../answer';
import { readJsonInput } from '../files/user-file';

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
 * @throws ConfigurationError if the file cannot be read or is not JSON.
 */
export async function validateFile(path: string): Promise<Answer> {
  const { takenFor, pointer, subject } = findSubject(await readJsonInput(path));
  const found = await validateBillOfLading(subject);
  const problems = shownOf(found.map((problem) => ({ ...problem, pointer: pointer + problem.pointer })));
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
