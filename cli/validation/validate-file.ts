import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { printable, printableJson } from '../terminal/printable';
import { readJsonInput } from '../files/user-file';
import { findSubject, type TakenFor } from './find-subject';

/** The lines to print, and whether the subject in the file is valid. */
export interface FileValidation {
  isValid: boolean;
  lines: string[];
}

const TAKEN_FOR: Record<TakenFor, string> = {
  credentialSubject: 'a credentialSubject',
  request: 'the body of a POST /create: its credentialSubject was checked',
  credential: 'a credential: its credentialSubject was checked',
  answer: 'the answer of a POST /create: the credentialSubject in it was checked',
};

/**
 * Validates the Bill of Lading in a file (`-`: standard input) strictly. Pointers are relative to the file.
 *
 * @throws ConfigurationError if the file cannot be read or is not JSON.
 */
export async function validateFile(path: string, asJson: boolean): Promise<FileValidation> {
  const { takenFor, pointer, subject } = findSubject(await readJsonInput(path));
  const found = await validateBillOfLading(subject);
  const problems = found.map((problem) => ({ ...problem, pointer: pointer + problem.pointer }));
  const isValid = problems.length === 0;
  if (asJson) return { isValid, lines: [printableJson({ valid: isValid, takenFor, problems })] };
  const lines = problems.map(
    (problem) => `${problem.pointer || '(the whole)'}  ${problem.message} [${problem.code}]`,
  );
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  return {
    isValid,
    lines: [
      `taken for ${TAKEN_FOR[takenFor]}`,
      ...lines.map((line) => printable(line)),
      isValid ? 'valid' : `not valid: ${count}`,
    ],
  };
}
