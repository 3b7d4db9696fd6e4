/** The kind of JSON that was recognised in a file. */
export type TakenFor = 'credentialSubject' | 'request' | 'credential' | 'answer';

/** The subject in a file. `pointer`: its JSON pointer within the file. */
export interface FoundSubject {
  takenFor: TakenFor;
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

function inside(takenFor: TakenFor, value: unknown): FoundSubject {
  const { credentialSubject } = value as { credentialSubject?: unknown };
  return { takenFor, pointer: '/credentialSubject', subject: credentialSubject };
}
