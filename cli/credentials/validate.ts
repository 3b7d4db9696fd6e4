import type { JsonObject } from '../../service/issuance/credential';
import { examineContext } from '../../service/validation/examine-context';
import { shownOf } from '../../service/validation/problems';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import type { Answer } from '../answer';
import { bytesOf, readJsonInput } from '../files/user-file';

/** The kinds of JSON that are recognised in a file. */
const TAKEN_FOR = {
  credentialSubject: 'a credentialSubject',
  request: 'the body of a POST /create: its credentialSubject was checked',
  credential: 'a credential: its credentialSubject was checked',
  answer: 'the answer of a POST /create: the credentialSubject in it was checked',
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
  const unusable = (own ? await examineContext(own) : []).map(({ pointer: at, reason }) => {
    return { pointer: '', code: 'CONTEXT_UNUSABLE' as const, message: `${context} ${at} ${reason}` };
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
 * /create, its answer, or a whole credential. JSON without the marks of the others is taken for the subject
 * alone.
 */
export function findSubject(value: unknown): FoundSubject {
  const fields =
    typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : new Map<string, unknown>();
  const signed: unknown = fields.get('signedW3CDocument');
  if (typeof signed === 'object' && signed !== null) {
    const { pointer, subject } = inside('answer', signed);
    return { takenFor: 'answer', pointer: `/signedW3CDocument${pointer}`, subject };
  }
  if (isCredential(fields)) return inside('credential', value);
  if (['credentialSubject', 'owner', 'holder'].some((name) => fields.has(name)))
    return inside('request', value);
  return { takenFor: 'credentialSubject', pointer: '', subject: value };
}

function isCredential(fields: ReadonlyMap<string, unknown>): boolean {
  const type = fields.get('type');
  if (type === 'VerifiableCredential' || (Array.isArray(type) && type.includes('VerifiableCredential')))
    return true;
  return (
    ['issuer', 'proof', 'credentialStatus'].some((name) => fields.has(name)) ||
    (fields.has('@context') && fields.has('credentialSubject'))
  );
}

function inside(takenFor: keyof typeof TAKEN_FOR, value: unknown): FoundSubject {
  const { credentialSubject } = value as { credentialSubject?: unknown };
  return { takenFor, pointer: '/credentialSubject', subject: credentialSubject };
}
