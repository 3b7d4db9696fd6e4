import type { RequestProblem } from '../../service/validation/problems';
import type { RequestFailure } from '../requests/request';
import { capitalised } from '../text/words';

/** A problem of a field. One that is not refused is a recommendation. */
export type FieldProblem = Pick<RequestProblem, 'message' | 'isRefused'>;

/** The problem of a field, if a request was refused because of the member at this JSON pointer. */
export function problemAt(failure: RequestFailure | undefined, pointer: string): FieldProblem | undefined {
  const { message = '' } = failure ?? {};
  if (!message.startsWith(`${pointer} `) && !message.startsWith(`${pointer}/`)) return undefined;
  const words = message.slice(message.indexOf(' ') + 1);
  return { message: capitalised(words), isRefused: true };
}

/** The fields for which a request was refused, each with its problem. `pointers`: those of the fields. */
export function problemsAt<Field extends string>(
  failure: RequestFailure | undefined,
  pointers: Readonly<Record<Field, string>>,
): Partial<Record<Field, FieldProblem[]>> {
  const found = Object.entries<string>(pointers).flatMap(([field, pointer]) => {
    const problem = problemAt(failure, pointer);
    return problem ? [[field, [problem]]] : [];
  });
  return Object.fromEntries(found) as Partial<Record<Field, FieldProblem[]>>;
}
