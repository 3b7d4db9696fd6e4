import { hexlify, toUtf8Bytes } from 'ethers';
import { ConfigurationError } from '../../service/base/errors';
import { encryptRemark } from '../../service/issuance/remarks';
import { requireCredentialId, type FoundToken } from '../token/find-token';

/** A remark as a transaction carries it: `0x` alone, or `0x` and its bytes in hex. */
export interface Remark {
  hex: string;
  isEncrypted: boolean;
}

/**
 * The remark that a user gives, encrypted under the credential's id if there is a credential.
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

/** Bytes of a remark. */
export function remarkLength({ hex }: Remark): number {
  return (hex.length - 2) / 2;
}

/** What people should know of a remark before it is on the chain for ever. */
export function remarkWarning({ hex, isEncrypted }: Remark): string[] {
  if (hex === '0x' || isEncrypted) return [];
  return ['The remark is not encrypted: everybody can read it. --credential FILE encrypts it.'];
}
