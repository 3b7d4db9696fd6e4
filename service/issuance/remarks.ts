import { createCipheriv, createHash } from 'node:crypto';

/**
 * A remark as the mint carries it: `0x` alone when there is none, otherwise `0x` and the hex of its encryption under the
 * credential's id. ChaCha20 (RFC 8439, counter 0), with a key and a nonce derived as the TradeTrust portal derives them, so that
 * it can show the remark (DESIGN section 3). Whoever has the credential can read the remark: it hides it from onlookers of the chain.
 */
export function encryptRemark(remark: string | undefined, credentialId: string): string {
  if (!remark) return '0x';
  const cipher = createCipheriv('chacha20', keyOf(credentialId), counterAndNonce());
  return `0x${Buffer.concat([cipher.update(remark, 'utf8'), cipher.final()]).toString('hex')}`;
}

/** The 32 ASCII characters of hex(SHAKE256(id, 128 bits)). */
function keyOf(credentialId: string): Buffer {
  return Buffer.from(shake256(credentialId, 16), 'ascii');
}

/** OpenSSL's initial state for ChaCha20: a 32-bit counter of 0, then the 12 ASCII characters of hex(SHAKE256("", 48 bits)). */
function counterAndNonce(): Buffer {
  return Buffer.concat([Buffer.alloc(4), Buffer.from(shake256('', 6), 'ascii')]);
}

function shake256(text: string, bytes: number): string {
  return createHash('shake256', { outputLength: bytes }).update(text, 'utf8').digest('hex');
}
