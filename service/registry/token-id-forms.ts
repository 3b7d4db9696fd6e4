import { MaxUint256 } from 'ethers';
import { RequestError, orUndefined } from '../base/errors';

/**
 * Parses a token id in one of the forms in use: 64 hexadecimal digits (`credentialStatus.tokenId`,
 * `data.tokenIdHex`), `0x` and hexadecimal digits, or decimal digits (`data.tokenId`). Returns undefined for
 * other text. 64 digits without `0x` are hexadecimal even if all are decimal: documents use this form, and
 * the decimal form of a document's id is longer.
 *
 * @throws RequestError TOKEN_ID_INVALID if the number is out of range, or if digits of the id are missing.
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

/** A truncated id: longer than the hash of a commit or a UUID, so it is not a file name. */
const CUT_OFF = /^[0-9a-f]{41,}$/i;

function invalid(problem: string): RequestError {
  const remedy = 'Give 64 hexadecimal digits, 0x and hexadecimal digits, or decimal digits.';
  return new RequestError('TOKEN_ID_INVALID', `${problem} ${remedy}`, { remedy });
}

/** Parses as `parseTokenId` does. Returns undefined also for an id that is out of range or cut off. */
export function tokenIdOrUndefined(text: string): bigint | undefined {
  return orUndefined(() => parseTokenId(text));
}

/** The id as 64 lower-case hexadecimal digits. */
export function tokenIdHexOf(tokenId: bigint): string {
  return tokenId.toString(16).padStart(64, '0');
}
