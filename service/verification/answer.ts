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

/** The answer is `invalid` if any check is; otherwise `could not tell` if any check is. */
export function answerOf(checks: Check[]): Answer {
  return { outcome: overall(checks.map(({ outcome }) => outcome)), checks };
}

/** Combines several outcomes. */
export function overall(outcomes: readonly Outcome[]): Outcome {
  if (outcomes.includes('invalid')) return 'invalid';
  return outcomes.includes('could not tell') ? 'could not tell' : 'valid';
}
