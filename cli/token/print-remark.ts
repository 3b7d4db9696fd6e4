import { decryptRemark, type DecryptedRemark } from '../../service/issuance/remarks';
import { printable } from '../terminal/printable';

/**
 * Formats a remark for people: its text, with a note unless it was encrypted under the credential's id, or
 * its bytes in hex if it cannot be read. Empty if there is no remark.
 */
export function printRemark(remark: string, credentialId: string | undefined): string {
  const decrypted = decryptRemark(remark, credentialId);
  switch (decrypted.kind) {
    case 'none':
      return '';
    case 'text':
      return quoted(decrypted.text);
    case 'plain text':
      return `${quoted(decrypted.text)} (plain text)`;
    case 'default key':
      return `${quoted(decrypted.text)} (under the default key of TrustVC)`;
    case 'undecipherable':
      return credentialId === undefined ? remark : `${remark} (cannot be decrypted with this credential)`;
  }
}

/** A remark for JSON output: its bytes, and its text unless a credential's id is needed to read it. */
export function remarkJson(
  remark: string,
  credentialId: string | undefined,
): { remark: string; decrypted?: DecryptedRemark } {
  const decrypted = decryptRemark(remark, credentialId);
  const needsCredential = credentialId === undefined && decrypted.kind === 'undecipherable';
  return needsCredential ? { remark } : { remark, decrypted };
}

function quoted(text: string): string {
  return `"${printable(text)}"`;
}
