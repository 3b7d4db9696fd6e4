/** `could not tell`: neither is shown; what is missing may be had later, or from somebody else. */
export type Outcome = 'valid' | 'invalid' | 'could not tell';

/** One thing that was looked at: what, and what was found. Texts may hold what strangers wrote. */
export interface Check {
  check: string;
  outcome: Outcome;
  found: string;
}

/** The answer to one question, with its reasons in the order in which they were looked at. */
export interface Answer {
  outcome: Outcome;
  checks: Check[];
}

/** One check that shows something wrong decides; then one that shows nothing. */
export function answerOf(checks: Check[]): Answer {
  return { outcome: overall(checks.map(({ outcome }) => outcome)), checks };
}

/** What several outcomes come to. */
export function overall(outcomes: readonly Outcome[]): Outcome {
  if (outcomes.includes('invalid')) return 'invalid';
  return outcomes.includes('could not tell') ? 'could not tell' : 'valid';
}
