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

/**
 * Whether a status says that nothing was issued and that the document has to change. After any other one the
 * same request may be sent again.
 */
export function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 408, 429].includes(status);
}
