import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { hexlify, recoverAddress, Signature, SigningKey, toBeHex, Wallet, ZeroHash } from 'ethers';
import { systemTime } from '../../service/base/time';
import { privateKeyOf } from '../../service/config/setting-types';
import { addressOf, signerOf } from '../../service/keys/transaction-signer';
import { openWallet } from '../../service/keys/wallet';

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
    expect(() => addressOf(new Uint8Array(65).fill(4))).to.throw('no point');
  });
});

describe('a wallet in this process', () => {
  it('signs as ethers does, with 20 keys', async () => {
    for (let left = 20; left > 0; left--) {
      const privateKey = hexlify(randomBytes(32));
      const [ours, theirs] = [openWallet(systemTime, { privateKey }), new Wallet(privateKey)];
      expect(ours.address).to.equal(theirs.address);
      const to = left % 2 ? theirs.address : null;
      const all = { to, data: hexlify(randomBytes(left)), chainId: left, nonce: left, gasLimit: 300_000n };
      for (const fields of [
        { ...all, type: 2, maxFeePerGas: 9n, maxPriorityFeePerGas: 1n } as const,
        { ...all, type: 0, gasPrice: 9n } as const,
      ])
        expect(await ours.sign(fields)).to.equal(await theirs.signTransaction(fields));
      const text = `line ${left}\nof a text, für alle`;
      expect(await ours.signMessage(text)).to.equal(await theirs.signMessage(text));
    }
  });

  it('has a key from 1 to below the order of secp256k1, with or without 0x', () => {
    const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
    const highest = `${order.slice(0, -1)}0`;
    expect(privateKeyOf(highest.toUpperCase())).to.equal(`0x${highest}`);
    expect(privateKeyOf(`0x${highest}`)).to.equal(`0x${highest}`);
    for (const wrong of [order, '0'.repeat(64), highest.slice(1), `${highest}0`, `0x${highest}\n`, ''])
      expect(privateKeyOf(wrong)).to.equal(undefined);
  });
});
