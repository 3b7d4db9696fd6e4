import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigurationError } from '../../service/base/errors';
import { fetchJson } from '../../service/did/fetch-json';
import { createContextSource } from '../../service/verification/contexts';
import { deriveCredential } from '../../service/verification/derive-credential';
import { credentialIn } from '../../service/verification/presented-credential';
import { printable } from '../terminal/printable';
import { readJsonInput } from '../files/user-file';
import { PUBLIC_MODE, writeFileAtomically } from '../files/write-file';
import { requirePointers } from './arguments';
import { knownContexts } from './sources';

/** The arguments of `tdoc derive`. */
export interface DeriveArguments {
  file: string;
  pointers: readonly string[];
  out: string | undefined;
}

/**
 * Derives the version of a credential that discloses the pointers, for a file or for standard output.
 *
 * @returns the credential's JSON unless it went into a file, and remarks for the user.
 * @throws ConfigurationError ARGUMENT_INVALID; the errors of readJsonInput, credentialIn and
 *   deriveCredential.
 */
export async function deriveFile(options: DeriveArguments): Promise<{ output: string[]; remarks: string[] }> {
  const pointers = requirePointers(options.pointers);
  const path = options.out === undefined ? undefined : freePath(options.out);
  const credential = credentialIn(await readJsonInput(options.file));
  const contexts = createContextSource(knownContexts(), fetchJson);
  const derived = await deriveCredential(credential, pointers, contexts.load);
  const text = JSON.stringify(derived, undefined, 2);
  const remarks = contexts.fetched().map((url) => `context fetched: ${url}`);
  if (!('credentialSubject' in derived))
    remarks.push('No part of credentialSubject is disclosed: most verifiers refuse that.');
  if (path === undefined) return { output: [text], remarks: remarks.map((remark) => printable(remark)) };
  writeFileAtomically(path, `${text}\n`, PUBLIC_MODE);
  return { output: [], remarks: [...remarks, `written to ${path}`].map((remark) => printable(remark)) };
}

/** Never overwrites a file: replacing a base credential by a derived version would lose it. */
function freePath(out: string): string {
  const path = resolve(out);
  if (!existsSync(path)) return path;
  throw new ConfigurationError(
    'ARGUMENT_INVALID',
    `--out: ${path} exists. Choose another name, or remove it.`,
  );
}
