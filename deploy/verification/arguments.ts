import { ConfigurationError } from '../../service/errors';

/**
 * The pointers to disclose: `FILE --reveal POINTER…`. Each is an argument of its own, so that it may hold
 * commas and spaces as the names in a document do. To Hardhat `--reveal` is a flag, and the pointers are what
 * follows FILE.
 *
 * @returns undefined without `--reveal`.
 * @throws ConfigurationError ARGUMENT_INVALID.
 */
export function pointersOf(reveal: boolean, pointers: readonly string[]): readonly string[] | undefined {
  const remedy =
    'FILE comes first, then --reveal, then one or more pointers such as /credentialSubject/blNumber.';
  const invalid = (message: string): ConfigurationError =>
    new ConfigurationError('ARGUMENT_INVALID', `${message} ${remedy}`, { remedy });
  if (!reveal && pointers.length > 0) throw invalid(`"${pointers[0]}" is one argument too many.`);
  if (!reveal) return undefined;
  if (pointers.length === 0) throw invalid('--reveal names nothing.');
  const odd = pointers.find((pointer) => pointer !== '' && !pointer.startsWith('/'));
  if (odd !== undefined) throw invalid(`"${odd}" is no JSON pointer: it does not begin with "/".`);
  return pointers;
}

/** The URLs of `--trust-context`, which spaces separate: a URL has none. */
export function trustedContextsOf(text: string | undefined): string[] {
  const urls = text?.split(/\s+/).filter(Boolean) ?? [];
  const odd = urls.find((url) => !URL.canParse(url));
  if (odd === undefined) return urls;
  throw new ConfigurationError('ARGUMENT_INVALID', `--trust-context: "${odd}" is not a URL.`);
}
