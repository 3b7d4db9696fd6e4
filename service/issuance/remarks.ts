import { createCipheriv, createHash } from 'node:crypto';
import { getBytes, hexlify } from 'ethers';
import { RequestError, orUndefined } from '../base/errors';

/** The contracts refuse longer ones, in UTF-8. */
export const MOST_REMARK_BYTES = 120;

/**
 * A remark as the mint carries it: `0x` alone when there is none, otherwise `0x` and the hex of its
 * encryption under the credential's id. The cipher is ChaCha20 (RFC 8439, counter 0). The key and the nonce
 * are derived as the TradeTrust portal derives them, so that it can show the remark (docs/specification.md
 * 4.2). Anyone who has the credential can read the remark; others who read the chain cannot.
 */
export function encryptRemark(remark: string | undefined, credentialId: string): string {
  if (!remark) return '0x';
  return hexlify(applyCipher(Buffer.from(remark, 'utf8'), credentialId));
}

/**
 * The kinds of remarks that a token may have:
 *
 * - `none`: no remark.
 * - `text`: encrypted under the credential's id.
 * - `plain text`: not encrypted.
 * - `default key`: encrypted under the key that TrustVC's library, and with it TradeTrust's CLI, uses if none
 *   is given. Anybody can read it.
 * - `undecipherable`: none of these.
 *
 * The text may come from anybody: print it through cli/terminal/printable.ts. The kind of a remark of a few
 * bytes may be wrong, because the cipher has no checksum.
 */
export type DecryptedRemark =
  { kind: 'none' | 'undecipherable' } | { kind: 'text' | 'plain text' | 'default key'; text: string };

/**
 * Decrypts a remark of `encryptRemark`, the TradeTrust portal or other programs.
 *
 * @param remark `0x` and the hex of its bytes, as in a log.
 * @param credentialId undefined if it is unknown.
 * @throws RequestError REMARK_INVALID if the remark is not hex.
 */
export function decryptRemark(remark: string, credentialId: string | undefined): DecryptedRemark {
  const bytes = remarkBytes(remark);
  if (bytes.length === 0 || hexlify(bytes) === ENDED_NOMINATION) return { kind: 'none' };
  const own = credentialId === undefined ? undefined : textOf(applyCipher(bytes, credentialId));
  if (isPrintable(own)) return { kind: 'text', text: own };
  const plain = textOf(bytes);
  if (isPrintable(plain)) return { kind: 'plain text', text: plain };
  const byDefault = textOf(applyCipher(bytes, DEFAULT_KEY));
  if (isPrintable(byDefault)) return { kind: 'default key', text: byDefault };
  // A remark under its own key may contain any characters: few other byte sequences decrypt to valid UTF-8.
  if (own !== undefined) return { kind: 'text', text: own };
  return { kind: 'undecipherable' };
}

/** Published by @trustvc/trustvc (dist/cjs/constants.js), which uses it for an empty key. */
const DEFAULT_KEY = '4d5a4e3f2f6d2b0a1f2e9b8f8a3c7a0b8d4f5c2e7b1a1c3f2e7b8c2d5a4f7e3e';

/** Whether a text looks human: bytes of another key soon give a control or unassigned character. */
function isPrintable(text: string | undefined): text is string {
  return text !== undefined && /^[\t\n\r\p{Cf}\P{C}]+$/u.test(text);
}

/** Undefined when the bytes are not UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  return orUndefined(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
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

/** Encrypts and decrypts: the operation is its own inverse. */
function applyCipher(bytes: Uint8Array, credentialId: string): Buffer {
  // A 32-bit counter of 0, and the nonce, as OpenSSL takes them.
  const counterAndNonce = Buffer.concat([Buffer.alloc(4), hashOf('', 6)]);
  const cipher = createCipheriv('chacha20', hashOf(credentialId, 16), counterAndNonce);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

/** The ASCII characters of hex(SHAKE256(text)): 32 of an id for the key, 12 of "" for the nonce. */
function hashOf(text: string, bytes: number): Buffer {
  return Buffer.from(createHash('shake256', { outputLength: bytes }).update(text, 'utf8').digest('hex'));
}
