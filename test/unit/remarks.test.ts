import { createDecipheriv, createHash } from 'node:crypto';
import { expect } from 'chai';
import { encryptRemark } from '../../service/issuance/remarks';

const ID = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';

function decrypt(hex: string, id: string): string {
  const shake = (text: string, bytes: number): string =>
    createHash('shake256', { outputLength: bytes }).update(text).digest('hex');
  const iv = Buffer.concat([Buffer.alloc(4), Buffer.from(shake('', 6))]);
  const decipher = createDecipheriv('chacha20', Buffer.from(shake(id, 16)), iv);
  return decipher.update(Buffer.from(hex.slice(2), 'hex')).toString('utf8');
}

describe('remark of a mint', () => {
  it('is 0x alone when there is none', () => {
    expect(encryptRemark(undefined, ID)).to.equal('0x');
    expect(encryptRemark('', ID)).to.equal('0x');
  });

  it('can be read by whoever has the credential, and only with its id', () => {
    const remark = 'Güter an Bord ✓ 提单';
    const encrypted = encryptRemark(remark, ID);
    expect(encrypted).to.match(/^0x[0-9a-f]+$/);
    expect(decrypt(encrypted, ID)).to.equal(remark);
    expect(decrypt(encrypted, `${ID}0`)).not.to.equal(remark);
  });

  it('is exactly as long as the remark in UTF-8, so that 120 bytes still fit the contract', () => {
    expect(encryptRemark('é'.repeat(60), ID)).to.have.length(2 + 2 * 120);
  });
});
