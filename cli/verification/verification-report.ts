import type { Answer, Outcome } from '../../service/verification/answer';
import type { Verification } from '../../service/verification/verify-credential';
import { printable, printableJson } from '../terminal/printable';

/** Longest reason in characters. */
const LONGEST_REASON = 400;

/** Maps each outcome to the answer of the command. */
export const IS_VALID: Record<Outcome, boolean | undefined> = {
  valid: true,
  invalid: false,
  'could not tell': undefined,
};

const MARKS: Record<Outcome, string> = { valid: 'ok', invalid: 'WRONG', 'could not tell': '?' };

/** Formats the answers and their reasons for people. */
export function reportLines(verification: Verification): string[] {
  const { documentIntegrity, issuerIdentity, documentStatus, contextsFetched, outcome } = verification;
  return [
    ...answerLines('document integrity', documentIntegrity),
    ...contextsFetched.map((url) => lineOf('', 'context fetched', url)),
    ...answerLines('issuer identity', issuerIdentity),
    ...answerLines('document status', documentStatus),
    `The credential is ${IN_WORDS[outcome]}.`,
  ];
}

const IN_WORDS: Record<Outcome, string> = {
  valid: 'VALID',
  invalid: 'INVALID',
  'could not tell': 'neither shown to be valid nor to be invalid: COULD NOT TELL',
};

/** Formats the answers as JSON (docs/verification.md), without the credential itself. */
export function reportJson(verification: Verification): string {
  return printableJson({ ...verification, shown: undefined });
}

function answerLines(question: string, { outcome, checks }: Answer): string[] {
  const lines = checks.map(({ check, outcome: each, found }) => lineOf(MARKS[each], check, found));
  return [`${question}: ${outcome.toUpperCase()}`, ...lines];
}

function lineOf(mark: string, check: string, found: string): string {
  return `  ${mark.padEnd(5)}  ${check}: ${printable(found, LONGEST_REASON)}`;
}
