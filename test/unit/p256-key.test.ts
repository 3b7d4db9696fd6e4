import { createECDH } from 'node:crypto';
import { expect } from 'chai';
import { publicKeyOf } from '../../cli/keys/did-key';
import { newDidKeyPair, newP256Key } from '../../service/base/did-key-pair';

/** About four of them begin with a zero byte. */
const KEYS = 1_000;

describe('a new P-256 key', () => {
  it('has a secret of 32 bytes, also with leading zeros, that belongs to its public key', () => {
    for (let made = 0; made < KEYS; made++) {
      const { secret, point, compressed } = newP256Key();
      expect(secret).to.have.lengthOf(32);
      const pair = createECDH('prime256v1');
      pair.setPrivateKey(secret);
      expect(pair.getPublicKey().equals(point)).to.equal(true);
      expect(pair.getPublicKey(null, 'compressed').equals(compressed)).to.equal(true);
    }
  });

  it('is exported with a public key that can be found from it', () => {
    const { publicKeyMultibase, secretKeyMultibase } = newDidKeyPair('did:web:x#keys-1', 'did:web:x');
    expect(publicKeyOf(secretKeyMultibase))
      .to.match(/^zDn[1-9A-HJ-NP-Za-km-z]{46}$/)
      .and.equal(publicKeyMultibase);
  });
});
