import { hexlify, toUtf8Bytes } from 'ethers';
import { ConfigurationError } from '../../service/base/errors';
import { encryptRemark } from '../../service/issuance/remarks';
import { requireCredentialId, type FoundToken } from '../token/find-token';

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
    const message = '--credential is the key of a remark: give --remark too, or leave it out.';
    throw new ConfigurationError('ARGUMENT_INVALID', message);
  }
  if (found === undefined) return { hex: hexlify(toUtf8Bytes(text)), isEncrypted: false };
  return { hex: encryptRemark(text, requireCredentialId(found)), isEncrypted: true };
}

/** Length of a remark in bytes. */
export function remarkLength({ hex }: Remark): number {
  return (hex.length - 2) / 2;
}

/** Warns that an unencrypted remark is public for ever. */
export function remarkWarning({ hex, isEncrypted }: Remark): string[] {
  if (hex === '0x' || isEncrypted) return [];
  return ['The remark is not encrypted: everybody can read it. --credential FILE encrypts it.'];
}
