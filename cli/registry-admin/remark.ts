import { hexlify, toUtf8Bytes } from 'ethers';
import { encryptRemark } from '../../service/issuance/remarks';
import { parseTokenId } from '../../service/registry/token-id-forms';
import { invalid } from '../errors';
import { readJsonInput } from '../files/user-file';
import {
  findToken,
  requireCredentialId,
  tokenOf,
  type FoundToken,
  type TokenReference,
} from '../token/find-token';

/** A remark as it is in a transaction: `0x` if it is empty, or `0x` and its bytes in hex. */
export interface Remark {
  hex: string;
  isEncrypted: boolean;
}

/**
 * Encodes the user's remark. It is encrypted under the credential's id if a credential is given.
 *
 * @throws ConfigurationError ARGUMENT_INVALID for `--credential` without a remark; RequestError
 *   CREDENTIAL_INVALID for a credential without id.
 */
export function remarkOf(
  text: string | undefined,
  { found, flag }: { found: FoundToken | undefined; flag: string | undefined },
): Remark {
  if (!text) {
    if (flag === undefined) return { hex: '0x', isEncrypted: false };
    throw invalid('--credential is the key of a remark: give --remark too, or leave it out.');
  }
  if (found === undefined) return { hex: hexlify(toUtf8Bytes(text)), isEncrypted: false };
  return { hex: encryptRemark(text, requireCredentialId(found)), isEncrypted: true };
}

/** Warns that an unencrypted remark is public for ever. */
export function remarkWarning({ hex, isEncrypted }: Remark): string[] {
  if (hex === '0x' || isEncrypted) return [];
  return ['The remark is not encrypted: everybody can read it. --credential FILE encrypts it.'];
}

/**
 * Finds the token that a user means and the credential whose id is the key of the remark, if one was given:
 * the one that names the token, or that of `--credential`.
 *
 * @throws ConfigurationError ARGUMENT_INVALID if `--credential` belongs to another token; the errors of
 *   findToken.
 */
export async function findTokenAndKey(
  reference: TokenReference,
  credential: string | undefined,
): Promise<{ token: FoundToken; key?: FoundToken }> {
  const isFile = parseTokenId(reference.token) === undefined;
  if (isFile && credential !== undefined) {
    const remedy = "Leave --credential out, or give the token's id.";
    throw invalid(`${reference.token} is the credential already.`, remedy);
  }
  const token = await findToken(reference);
  if (isFile) return { token, key: token };
  if (credential === undefined) return { token };
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

function ofAnother(what: string, why: string): Error {
  return invalid(`--credential belongs to another ${what}: ${why}.`);
}
