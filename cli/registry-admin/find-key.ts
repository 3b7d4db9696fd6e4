import { ConfigurationError } from '../../service/base/errors';
import { parseTokenId } from '../../service/registry/token-id-forms';
import { findToken, tokenOf, type FoundToken, type TokenReference } from '../token/find-token';
import { readJsonInput } from '../files/user-file';

/** A token, and the credential whose id encrypts its remarks, if one was given. */
export interface TokenAndKey {
  token: FoundToken;
  key: FoundToken | undefined;
}

/**
 * Finds the token that a user means and the key of the remark: the credential that names the token, or the
 * one of `--credential`.
 *
 * @throws ConfigurationError ARGUMENT_INVALID if `--credential` belongs to another token; the errors of
 *   findToken.
 */
export async function findTokenAndKey(
  reference: TokenReference,
  credential: string | undefined,
): Promise<TokenAndKey> {
  const isFile = parseTokenId(reference.token) === undefined;
  if (isFile && credential !== undefined) {
    const remedy = "leave --credential out, or give the token's id.";
    const message = `${reference.token} is the credential already: ${remedy}`;
    throw new ConfigurationError('ARGUMENT_INVALID', message);
  }
  const token = await findToken(reference);
  if (isFile) return { token, key: token };
  if (credential === undefined) return { token, key: undefined };
  const key = await keyForRegistry(credential, token.location);
  if (key.location.tokenId !== token.location.tokenId)
    throw ofAnother('token', 'a person with that credential could not read the remark of this token');
  return { token, key };
}

/**
 * Reads the credential in a file, which may belong to any token of this registry.
 *
 * @throws ConfigurationError ARGUMENT_INVALID if it belongs to another registry; the errors of reading it.
 */
export async function keyForRegistry(
  file: string,
  { chainId, registry }: { chainId: number; registry: string },
): Promise<FoundToken> {
  const key = tokenOf(await readJsonInput(file));
  const { location } = key;
  if (location.chainId === chainId && location.registry.toLowerCase() === registry.toLowerCase()) return key;
  throw ofAnother('registry', `it names ${location.registry} on chain ${location.chainId}`);
}

function ofAnother(what: string, why: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', `--credential belongs to another ${what}: ${why}.`);
}
