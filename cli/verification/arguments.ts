import { ConfigurationError } from '../../service/base/errors';

/**
 * Checks the pointers of `--reveal`. Each is an argument of its own, because names in a document may contain
 * commas and spaces.
 *
 * @throws ConfigurationError ARGUMENT_INVALID.
 */
export function requirePointers(pointers: readonly string[]): readonly string[] {
  const odd = pointers.find((pointer) => pointer !== '' && !pointer.startsWith('/'));
  if (odd === undefined) return pointers;
  const remedy =
    'FILE comes first, then --reveal, then one or more pointers such as /credentialSubject/blNumber.';
  const message = `"${odd}" is not a JSON pointer: it does not begin with "/". ${remedy}`;
  throw new ConfigurationError('ARGUMENT_INVALID', message, { remedy });
}

/** @throws ConfigurationError ARGUMENT_INVALID. */
export function requireUrls(urls: readonly string[]): readonly string[] {
  const odd = urls.find((url) => !URL.canParse(url));
  if (odd === undefined) return urls;
  throw new ConfigurationError('ARGUMENT_INVALID', `--trust-context: "${odd}" is not a URL.`);
}
