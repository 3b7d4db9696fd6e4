import { MaxUint256 } from 'ethers';
import { RequestError } from '../base/errors';

/**
 * A token's id as people have it: 64 hexadecimal digits (`credentialStatus.tokenId`, `data.tokenIdHex`), `0x`
 * and hexadecimal digits, or decimal digits (`data.tokenId`). Undefined when the text is none of these. 64
 * digits without `0x` are hexadecimal even if all of them are decimal: that is how documents have it, and no
 * decimal id of a document is so short.
 *
 * @throws RequestError TOKEN_ID_INVALID when it is a number that no token can have, or an id that lost some
 *   of its digits.
 */
export function parseTokenId(text: string): bigint | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return BigInt(`0x${text}`);
  if (!/^(0x[0-9a-f]+|[0-9]+)$/i.test(text)) {
    if (CUT_OFF.test(text)) throw invalid(`${text} has ${text.length} hexadecimal digits, not 64.`);
    return undefined;
  }
  const tokenId = BigInt(text.toLowerCase());
  if (tokenId <= MaxUint256) return tokenId;
  throw invalid(`${text} is more than 256 bits.`);
}

/**
 * More than a commit or a UUID has: no file is called so, but an id of which something was lost when it was
 * copied.
 */
const CUT_OFF = /^[0-9a-f]{41,}$/i;

function invalid(problem: string): RequestError {
  const remedy = 'Give 64 hexadecimal digits, 0x and hexadecimal digits, or decimal digits.';
  return new RequestError('TOKEN_ID_INVALID', `${problem} ${remedy}`, { remedy });
}

/** As 64 lower-case hexadecimal digits. */
export function tokenIdHexOf(tokenId: bigint): string {
  return tokenId.toString(16).padStart(64, '0');
}
