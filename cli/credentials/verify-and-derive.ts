import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Time } from '../../service/base/time';
import { codeOf, cut, LONGEST_MESSAGE, messageOf, ServiceError } from '../../service/base/errors';
import { createFetching } from '../../service/did/fetch-json';
import type { Answer as Checked, Outcome } from '../../service/verification/answer';
import { createContextSource } from '../../service/verification/contexts';
import { deriveCredential } from '../../service/verification/derive-credential';
import { credentialIn } from '../../service/verification/presented-credential';
import { verifyCredential, type Verification } from '../../service/verification/verify-credential';
import type { Answer } from '../answer';
import { invalid, maskSecrets } from '../errors';
import { readJsonInput } from '../files/user-file';
import { PUBLIC_MODE, writeFileAtomically } from '../files/write-file';
import { printableJson } from '../terminal/printable';
import { knownContexts, verificationSources } from './sources';

/** The options of `tdoc verify-credential`. `reveal`: undefined discloses everything. */
export interface VerifyOptions {
  reveal?: string[];
  trustContext?: string[];
}

/** Verifies the credential in a file. Any error that prevents an answer is COULD NOT TELL: exit code 2. */
export async function verifyFile(time: Time, file: string, options: VerifyOptions): Promise<Answer> {
  try {
    const reveal = options.reveal && requirePointers(options.reveal);
    const trustedContexts = requireUrls(options.trustContext ?? []);
    const credential = credentialIn(await readJsonInput(file));
    const verification = await verifyCredential(credential, verificationSources(time), {
      reveal,
      trustedContexts,
    });
    return {
      lines: reportLines(verification),
      // docs/verification.md: without the credential itself.
      json: { ...verification, shown: undefined },
      isYes: IS_VALID[verification.outcome],
    };
  } catch (thrown) {
    return notVerified(thrown);
  }
}

/** Standard output is not masked or cut otherwise: a message may have an argument of any length. */
function notVerified(thrown: unknown): Answer {
  const code = codeOf(thrown) ?? 'UNEXPECTED_ERROR';
  const message = cut(maskSecrets(messageOf(thrown)), LONGEST_MESSAGE);
  const { remedy } = thrown instanceof ServiceError ? thrown : {};
  const hint = remedy !== undefined && !message.includes(remedy) ? [remedy] : [];
  return {
    lines: [],
    json: { outcome: 'could not tell', error: { code, message } },
    isYes: undefined,
    remarks: [`${message} [${code}]`, ...hint],
  };
}

const IS_VALID: Record<Outcome, boolean | undefined> = {
  valid: true,
  invalid: false,
  'could not tell': undefined,
};
const MARKS: Record<Outcome, string> = { valid: 'ok', invalid: 'WRONG', 'could not tell': '?' };
const IN_WORDS: Record<Outcome, string> = {
  valid: 'VALID',
  invalid: 'INVALID',
  'could not tell': 'neither shown to be valid nor to be invalid: COULD NOT TELL',
};

/** Longest reason in characters. */
const LONGEST_REASON = 400;

function reportLines(verification: Verification): string[] {
  const { documentIntegrity, issuerIdentity, documentStatus, contextsFetched, outcome } = verification;
  return [
    ...checkedLines('document integrity', documentIntegrity),
    ...contextsFetched.map((url) => lineOf('', 'context fetched', url)),
    ...checkedLines('issuer identity', issuerIdentity),
    ...checkedLines('document status', documentStatus),
    `The credential is ${IN_WORDS[outcome]}.`,
  ];
}

function checkedLines(question: string, { outcome, checks }: Checked): string[] {
  const lines = checks.map(({ check, outcome: each, found }) => lineOf(MARKS[each], check, found));
  return [`${question}: ${outcome.toUpperCase()}`, ...lines];
}

function lineOf(mark: string, check: string, found: string): string {
  return `  ${mark.padEnd(5)}  ${check}: ${cut(found, LONGEST_REASON)}`;
}

/**
 * Derives the version of a credential that discloses the pointers, into a file or for standard output.
 *
 * @throws ConfigurationError ARGUMENT_INVALID; the errors of readJsonInput, credentialIn and
 *   deriveCredential.
 */
export async function deriveFile(
  time: Time,
  file: string,
  { reveal, out }: { reveal: string[]; out?: string },
): Promise<Answer> {
  const pointers = requirePointers(reveal);
  const path = out === undefined ? undefined : freePath(out);
  const credential = credentialIn(await readJsonInput(file));
  const contexts = createContextSource(knownContexts(), createFetching(time));
  const derived = await deriveCredential(credential, pointers, contexts.load);
  const remarks = contexts.fetched().map((url) => `context fetched: ${url}`);
  if (!('credentialSubject' in derived))
    remarks.push('No part of credentialSubject is disclosed: most verifiers refuse that.');
  if (path !== undefined) {
    writeFileAtomically(path, `${printableJson(derived)}\n`, PUBLIC_MODE);
    remarks.push(`written to ${path}`);
  }
  return {
    lines: [],
    json: derived,
    isForAll: path === undefined,
    isYes: true,
    remarks,
  };
}

/** Never overwrites a file: replacing a base credential by a derived version would lose it. */
function freePath(out: string): string {
  const path = resolve(out);
  if (!existsSync(path)) return path;
  throw invalid(`--out: ${path} exists. Choose another name, or remove it.`);
}

/**
 * Checks the pointers of `--reveal`. Each is an argument of its own, because names in a document may contain
 * commas and spaces.
 *
 * @throws ConfigurationError ARGUMENT_INVALID.
 */
export function requirePointers(pointers: readonly string[]): readonly string[] {
  const odd = pointers.find((pointer) => pointer !== '' && !pointer.startsWith('/'));
  if (odd === undefined) return pointers;
  throw invalid(
    `"${odd}" is not a JSON pointer: it does not begin with "/".`,
    'FILE comes first, then --reveal, then one or more pointers such as /credentialSubject/blNumber.',
  );
}

/** @throws ConfigurationError ARGUMENT_INVALID. */
export function requireUrls(urls: readonly string[]): readonly string[] {
  const odd = urls.find((url) => !URL.canParse(url));
  if (odd === undefined) return urls;
  throw invalid(`--trust-context: "${odd}" is not a URL.`);
}
