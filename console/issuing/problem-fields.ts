import type { RequestProblem } from '../../service/console/views';

/** The place of problems that belong to no field of the form. */
export const WHOLE_FORM = '';

/**
 * Puts each problem beside its field. Fields are named by JSON pointers into the request. A problem belongs
 * to the field of its pointer, or to the nearest one around it.
 */
export function problemsByField(
  problems: readonly RequestProblem[],
  fields: ReadonlySet<string>,
): ReadonlyMap<string, readonly RequestProblem[]> {
  const found = new Map<string, RequestProblem[]>();
  for (const problem of problems) {
    const field = fieldOf(problem.pointer, fields);
    found.set(field, [...(found.get(field) ?? []), problem]);
  }
  return found;
}

function fieldOf(pointer: string, fields: ReadonlySet<string>): string {
  for (let around = pointer; around !== ''; around = around.slice(0, around.lastIndexOf('/')))
    if (fields.has(around)) return around;
  return WHOLE_FORM;
}

/** The service issues a document without these terms too. The form does not: nobody could use it. */
export function withRequired(problems: readonly RequestProblem[]): RequestProblem[] {
  return problems.map((problem) =>
    problem.code === 'REQUIRED_FIELD_MISSING'
      ? { ...problem, message: 'A Bill of Lading needs this.', isRefused: true }
      : problem,
  );
}

/**
 * The problem that a refusal names. Messages of the service begin with the pointer of what is wrong; others
 * concern the whole form.
 */
export function problemOfRefusal(code: string, message: string): RequestProblem {
  const pointer = /^\/\S*/.exec(message)?.[0] ?? WHOLE_FORM;
  return { pointer, code, message, isRefused: true };
}

/** The service refuses every request with the same bytes with these codes, so none of them was accepted. */
const REFUSALS: ReadonlySet<string> = new Set([
  'BODY_NOT_JSON',
  'BODY_TOO_COMPLEX',
  'BODY_TOO_LARGE',
  'REMARK_TOO_LONG',
  'REQUEST_FIELD_INVALID',
  'SUBJECT_EMPTY',
  'SUBJECT_TERM_UNDEFINED',
  'SUBJECT_VALUE_INVALID',
  'TEXT_NOT_PROTECTED',
]);

/**
 * Whether a failure says that nothing was issued and that the document has to change. After any other one,
 * as of a proxy or of a session, an earlier request may have been accepted, and the same is sent again.
 */
export function isRefusal(code: string): boolean {
  return REFUSALS.has(code);
}
