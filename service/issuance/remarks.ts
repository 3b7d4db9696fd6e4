import { createCipheriv, createHash } from 'node:crypto';
import { getBytes, hexlify } from 'ethers';
import { RequestError } from '../errors';

/**
 * A remark as the mint carries it: `0x` alone when there is none, otherwise `0x` and the hex of its
 * encryption under the credential's id. ChaCha20 (RFC 8439, counter 0), with a key and a nonce derived as the
 * TradeTrust portal derives them, so that it can show the remark (DESIGN section 3). Whoever has the
 * credential can read the remark: it hides it from onlookers of the chain.
 */
export function encryptRemark(remark: string | undefined, credentialId: string): string {
  if (!remark) return '0x';
  return hexlify(applyCipher(Buffer.from(remark, 'utf8'), credentialId));
}

/**
 * What a remark on chain says to whoever has the credential:
 *
 * - `none`: nothing was attached.
 * - `text`: the remark. Anybody may have written it: print it through deploy/printable.ts.
 * - `undecipherable`: it is not UTF-8 when decrypted: written in plain text, or under another key. A short
 *   remark under another key may be taken for text: the cipher has no checksum.
 */
export type DecryptedRemark = { kind: 'none' | 'undecipherable' } | { kind: 'text'; text: string };

/**
 * Decrypts what `encryptRemark`, or the TradeTrust portal, wrote.
 *
 * @param remark `0x` and the hex of its bytes, as a log has it.
 * @throws RequestError REMARK_INVALID when it is not that.
 */
export function decryptRemark(remark: string, credentialId: string): DecryptedRemark {
  const bytes = remarkBytes(remark);
  if (bytes.length === 0 || hexlify(bytes) === ENDED_NOMINATION) return { kind: 'none' };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return { kind: 'text', text: text.decode(applyCipher(bytes, credentialId)) };
  } catch {
    return { kind: 'undecipherable' };
  }
}

/**
 * The ASCII characters "0x": the contract's own remark when a transfer ends a nomination
 * (TitleEscrow._setBeneficiary).
 */
const ENDED_NOMINATION = '0x3078';

function remarkBytes(remark: string): Uint8Array {
  if (/^0x(?:[0-9a-fA-F]{2})*$/.test(remark)) return getBytes(remark);
  const remedy = 'It is 0x and two hexadecimal digits for each byte, as the event has it.';
  throw new RequestError('REMARK_INVALID', `The remark is not hexadecimal. ${remedy}`, { remedy });
}

/** The same for both directions. */
function applyCipher(bytes: Uint8Array, credentialId: string): Buffer {
  const cipher = createCipheriv('chacha20', keyOf(credentialId), counterAndNonce());
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

/** The 32 ASCII characters of hex(SHAKE256(id, 128 bits)). */
function keyOf(credentialId: string): Buffer {
  return Buffer.from(shake256(credentialId, 16), 'ascii');
}

/**
 * OpenSSL's initial state for ChaCha20: a 32-bit counter of 0, then the 12 ASCII characters of
 * hex(SHAKE256("", 48 bits)).
 */
function counterAndNonce(): Buffer {
  return Buffer.concat([Buffer.alloc(4), Buffer.from(shake256('', 6), 'ascii')]);
}

function shake256(text: string, bytes: number): string {
  return createHash('shake256', { outputLength: bytes }).update(text, 'utf8').digest('hex');
}
