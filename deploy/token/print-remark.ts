import { decryptRemark, type DecryptedRemark } from '../../service/issuance/remarks';
import { printable } from '../printable';

/**
 * A remark for people: its text when the credential's id is known and is its key, otherwise its bytes in hex.
 * Empty: none.
 */
export function printRemark(remark: string, credentialId: string | undefined): string {
  if (credentialId === undefined) return remark === '0x' ? '' : remark;
  const decrypted = decryptRemark(remark, credentialId);
  switch (decrypted.kind) {
    case 'none':
      return '';
    case 'text':
      return `"${printable(decrypted.text)}"`;
    case 'undecipherable':
      return `${remark} (not decipherable with this credential)`;
  }
}

/** A remark for programs: its bytes, and what they say when the credential's id is known. */
export function remarkJson(
  remark: string,
  credentialId: string | undefined,
): { remark: string; decrypted?: DecryptedRemark } {
  return credentialId === undefined ? { remark } : { remark, decrypted: decryptRemark(remark, credentialId) };
}
