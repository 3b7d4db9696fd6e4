import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { hexlify, recoverAddress, Signature, SigningKey, toBeHex, ZeroHash } from 'ethers';
import { signerOf } from '../../service/keys/transaction-signer';

/** An x-coordinate of no point of secp256k1. */
const NO_POINT = 5n;

describe('the address that signed', () => {
  it("is the one that ethers recovers, for both parities of 50 keys' signatures", () => {
    for (let left = 50; left > 0; left--) {
      const digest = hexlify(randomBytes(32));
      const { r, s } = new SigningKey(randomBytes(32)).sign(digest);
      for (const yParity of [0, 1] as const) {
        const signature = Signature.from({ r, s, yParity });
        expect(signerOf(digest, signature)).to.equal(recoverAddress(digest, signature));
      }
    }
  });

  it('is undefined where no key can have signed', () => {
    const digest = hexlify(randomBytes(32));
    const { r, s } = new SigningKey(randomBytes(32)).sign(digest);
    for (const impossible of [
      { r: ZeroHash, s },
      { r, s: ZeroHash },
      { r: toBeHex(NO_POINT, 32), s },
      { r: hexlify(new Uint8Array(32).fill(255)), s },
    ])
      expect(signerOf(digest, Signature.from({ ...impossible, yParity: 0 }))).to.equal(undefined);
  });
});
