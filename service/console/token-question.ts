import { RequestError } from '../base/errors';
import { isJsonObject } from '../issuance/credential';
import { parseTokenId } from '../registry/token-id-forms';
import { isPlainAddress, tokenLocationOf, type TokenLocation } from '../token/token-location';
import { credentialIn } from '../verification/presented-credential';
import type { TokenQuestion } from './views';

/** A token, and the id of its credential if there is one: it decrypts the remarks. */
export interface AskedToken {
  location: TokenLocation;
  credentialId: string | undefined;
}

/** Longer than every form of a token id. */
const LONGEST_ID = 80;

/**
 * The token that a question is about.
 *
 * @param own the registry in which documents are issued.
 * @throws RequestError REQUEST_FIELD_INVALID, TOKEN_ID_INVALID, CREDENTIAL_INVALID,
 *   CREDENTIAL_STATUS_INVALID.
 */
export function askedToken(
  { tokenId, registry, credential }: { [Name in keyof TokenQuestion]: unknown },
  own: { chainId: number; registry: string | undefined },
): AskedToken {
  if (credential !== undefined && credential !== null) {
    if (tokenId !== undefined || registry !== undefined)
      throw invalid('/credential names its token. Leave tokenId and registry out.');
    const isLocated = isJsonObject(credential) && 'credentialStatus' in credential;
    const found = isLocated ? credential : credentialIn(credential);
    const credentialId = typeof found.id === 'string' ? found.id : undefined;
    return { location: tokenLocationOf(found), credentialId };
  }
  if (typeof tokenId !== 'string')
    throw invalid('/tokenId must be a text: 64 hexadecimal digits, or a decimal number.');
  const parsed = tokenId.length > LONGEST_ID ? undefined : parseTokenId(tokenId.trim());
  if (parsed === undefined) {
    const remedy = 'Give 64 hexadecimal digits, 0x and hexadecimal digits, or decimal digits.';
    throw new RequestError('TOKEN_ID_INVALID', `/tokenId is not a token id. ${remedy}`, { remedy });
  }
  return { location: { ...registryOf(registry, own), tokenId: parsed }, credentialId: undefined };
}

function registryOf(
  named: unknown,
  own: { chainId: number; registry: string | undefined },
): { chainId: number; registry: string } {
  if (named === undefined) {
    if (own.registry !== undefined) return { chainId: own.chainId, registry: own.registry };
    throw invalid('/registry is missing: no documents are issued here. Write <chain id>:<address>.');
  }
  const [, chainId = '', address = ''] =
    /^([1-9]\d{0,14}):(0x[0-9a-fA-F]{40})$/.exec(typeof named === 'string' ? named : '') ?? [];
  if (isPlainAddress(address)) return { chainId: Number(chainId), registry: address };
  throw invalid('/registry must be <chain id>:<address>, with a right checksum or in lower case.');
}

function invalid(message: string): RequestError {
  return new RequestError('REQUEST_FIELD_INVALID', message);
}
