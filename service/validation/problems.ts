import { cut, LONGEST_MESSAGE } from '../base/errors';

/** A problem of a credentialSubject, described for its author. */
export interface SubjectProblem {
  /** JSON pointer (RFC 6901) into the subject; empty for the whole. */
  pointer: string;
  code: SubjectProblemCode;
  message: string;
}

/** Listed in docs/contexts.md. The create endpoint refuses a subject with one of the last five. */
export type SubjectProblemCode =
  | 'CONTEXT_UNUSABLE'
  | 'SUBJECT_MISSING'
  | 'TYPE_NOT_BILL_OF_LADING'
  | 'REQUIRED_FIELD_MISSING'
  | 'VALUE_TYPE_WRONG'
  | 'ATTACHMENT_NOT_BASE64'
  | 'TERM_UNKNOWN'
  | 'SUBJECT_EMPTY'
  | 'SUBJECT_TERM_UNDEFINED'
  | 'TEXT_NOT_PROTECTED'
  | 'SUBJECT_VALUE_INVALID'
  | 'BODY_TOO_COMPLEX';

/** A problem of a request. `pointer` points into it: `/owner`, `/credentialSubject/blNumber`. */
export interface RequestProblem extends Omit<SubjectProblem, 'code'> {
  code: string;
  /** Whether POST /create would refuse it. The others are recommendations of the strict validation. */
  isRefused: boolean;
}

/** Answer of POST /console/api/validate. */
export interface Validation {
  problems: RequestProblem[];
  remarkBytes: number;
  mostRemarkBytes: number;
}

/** More than an author reads at once. */
const MOST_SHOWN = 100;

/** The first problems, without the middle of long names. */
export function shownOf<P extends Pick<SubjectProblem, 'pointer' | 'message'>>(problems: readonly P[]): P[] {
  return problems.slice(0, MOST_SHOWN).map((problem) => ({
    ...problem,
    pointer: cut(problem.pointer, LONGEST_MESSAGE),
    message: cut(problem.message, LONGEST_MESSAGE),
  }));
}

/** The beginning of a sentence as a message. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
