import { cut, LONGEST_MESSAGE } from '../base/errors';

/** `could not tell`: neither could be shown; missing data may be available later or from another source. */
export type Outcome = 'valid' | 'invalid' | 'could not tell';

/** One check and its finding. Texts may contain what strangers wrote. */
export interface Check {
  check: string;
  outcome: Outcome;
  found: string;
}

/** The answer to one question, with its checks in the order in which they were made. */
export interface Answer {
  outcome: Outcome;
  checks: Check[];
}

const checkWith =
  (outcome: Outcome) =>
  (check: string, found: string): Check => ({ check, outcome, found: cut(found, LONGEST_MESSAGE) });
export const valid = checkWith('valid');
export const invalid = checkWith('invalid');
export const couldNotTell = checkWith('could not tell');

export function answerOf(checks: Check[]): Answer {
  return { outcome: overall(checks), checks };
}

/** `invalid` if any part is; otherwise `could not tell` if any part is. */
export function overall(parts: readonly { outcome: Outcome }[]): Outcome {
  const outcomes = parts.map(({ outcome }) => outcome);
  if (outcomes.includes('invalid')) return 'invalid';
  return outcomes.includes('could not tell') ? 'could not tell' : 'valid';
}
