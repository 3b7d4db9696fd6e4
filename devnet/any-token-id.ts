import { RequestError } from '../service/base/errors';
import { parseTokenId } from '../service/registry/token-id-forms';

/**
 * The token id in any of its forms: 64 hexadecimal digits, as in a credential; `0x` and hexadecimal digits;
 * decimal digits, as in an event; a bigint.
 *
 * @throws RequestError TOKEN_ID_INVALID.
 */
export function anyTokenId(tokenId: string | bigint): bigint {
  const parsed = parseTokenId(typeof tokenId === 'bigint' ? `0x${tokenId.toString(16)}` : tokenId);
  if (parsed !== undefined) return parsed;
  throw new RequestError('TOKEN_ID_INVALID', `"${tokenId}" is not a token id.`);
}
