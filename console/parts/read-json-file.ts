import { RequestFailure } from '../requests/request';

/** A credential has at most 50 MB, as the body that it was issued from. */
const MOST_BYTES = 50 * 1024 * 1024;

/** Reads a file that has to be a JSON object, and returns its text. */
export async function readJsonFile(file: File): Promise<string> {
  if (file.size > MOST_BYTES)
    throw refused(
      'FILE_TOO_LARGE',
      `${file.name} has more than 50 MB. Verify it with: npx tdoc verify-credential`,
    );
  return jsonObjectText(await file.text(), file.name);
}

/** Checks that a text is a JSON object. Its bytes stay as they are: they may have been signed. */
export function jsonObjectText(text: string, name: string): string {
  const remedy = 'Choose the JSON file of a credential.';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refused('NOT_JSON', `${name} is not JSON. ${remedy}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused('NOT_A_CREDENTIAL', `${name} is not a JSON object. ${remedy}`);
  return text;
}

function refused(code: string, message: string): RequestFailure {
  return new RequestFailure(0, code, message);
}
