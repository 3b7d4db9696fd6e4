import { createDecipheriv, createHash, randomBytes, randomInt } from 'node:crypto';
import { expect } from 'chai';
import { hexlify } from 'ethers';
import { printRemark, remarkJson } from '../../cli/token/print-remark';
import { codeOf } from '../../service/base/errors';
import { decryptRemark, encryptRemark } from '../../service/issuance/remarks';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const ID = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';

const MANY_IDS = 3_000;

const COMMANDS = '\u001b[2J\u001b[2J';

/** What @trustvc/trustvc 2.11.0 writes of "shipped on board" and of the commands, given an empty key. */
const UNDER_DEFAULT_KEY = '0xbf714a9eb294dcc44daba65791b5f590';
const COMMANDS_UNDER_DEFAULT_KEY = '0xd74211a4d9aa8aae';

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

describe('a remark read from the chain', () => {
  const seed = randomInt(2 ** 32);

  it(`is what was encrypted, whatever the text and the id are (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const short = ['x', 'ok', '\u{feff}shipped', '\u{1f6a2}'.repeat(30), 'é'.repeat(60), 'a'.repeat(120)];
    const long = [COMMANDS.repeat(10), ...Array.from({ length: 500 }, () => someText(random))];
    for (const text of [...short, ...long]) {
      const id = `urn:uuid:${random.hex(16)}`;
      expect(decryptRemark(encryptRemark(text, id), id)).to.deep.equal({ kind: 'text', text });
    }
  });

  it('is none when there are no bytes, and when it is what the contract writes as it ends a nomination', () => {
    expect(decryptRemark('0x', ID)).to.deep.equal({ kind: 'none' });
    expect(decryptRemark(hexlify(Buffer.from('0x')), ID)).to.deep.equal({ kind: 'none' });
  });

  it('is plain text where somebody wrote it so, as the commands of a registry do without a credential', () => {
    for (const text of ['shipped on board', 'Güter an Bord ✓ 提单', 'two\nlines', '👨‍👩‍👧 aboard']) {
      const plain = { kind: 'plain text', text };
      expect(decryptRemark(hexlify(Buffer.from(text)), ID)).to.deep.equal(plain);
      expect(decryptRemark(hexlify(Buffer.from(text)), undefined)).to.deep.equal(plain);
    }
  });

  for (const [text, atLeast] of [
    ['ok', 0.79],
    ['paid', 0.945],
    ['Return', 0.982],
  ] as const)
    it(`is plain text to nearly all credentials although it is short: ${text} (seed ${seed})`, () => {
      const random = seededRandom(seed);
      const remark = hexlify(Buffer.from(text));
      const read = Array.from({ length: MANY_IDS }, () =>
        decryptRemark(remark, `urn:uuid:${random.hex(16)}`),
      );
      const right = read.filter((one) => one.kind === 'plain text' && one.text === text);
      expect(right.length / MANY_IDS).to.be.at.least(atLeast);
    });

  it('is read under the default key, which the tools of TradeTrust use when they are given none', () => {
    const readable = { kind: 'default key', text: 'shipped on board' };
    expect(decryptRemark(UNDER_DEFAULT_KEY, ID)).to.deep.equal(readable);
    expect(decryptRemark(UNDER_DEFAULT_KEY, undefined)).to.deep.equal(readable);
  });

  it('is told to be undecipherable when it is under another key, or no text at all', () => {
    const undecipherable = { kind: 'undecipherable' };
    for (const remark of [
      encryptRemark('shipped on board', `${ID}0`),
      hexlify(randomBytes(120)),
      hexlify(Buffer.from(COMMANDS)),
      COMMANDS_UNDER_DEFAULT_KEY,
    ])
      for (const id of [ID, undefined]) expect(decryptRemark(remark, id)).to.deep.equal(undecipherable);
    expect(decryptRemark(encryptRemark('shipped on board', ID), undefined)).to.deep.equal(undecipherable);
  });

  it('is refused when it is no hex: an odd number of digits, none of them, no 0x', () => {
    for (const wrong of ['0x1', '0xzz', '76', '', '0X76', '0x76 ', 'shipped']) {
      expect(() => decryptRemark(wrong, ID))
        .to.throw('not hexadecimal')
        .and.satisfy((error: unknown) => codeOf(error) === 'REMARK_INVALID');
    }
  });

  it('may be in upper case', () => {
    const encrypted = encryptRemark('shipped', ID);
    const upper = `0x${encrypted.slice(2).toUpperCase()}`;
    expect(decryptRemark(upper, ID)).to.deep.equal({ kind: 'text', text: 'shipped' });
  });
});

describe('a remark that is shown', () => {
  const plain = hexlify(Buffer.from('restored'));
  const underOwnKey = encryptRemark('shipped on board', ID);

  it('says how it was written, unless that is under the credential', () => {
    expect(printRemark(underOwnKey, ID)).to.equal('"shipped on board"');
    for (const id of [ID, undefined]) {
      expect(printRemark(plain, id)).to.equal('"restored" (plain text)');
      expect(printRemark(UNDER_DEFAULT_KEY, id)).to.equal(
        '"shipped on board" (under the default key of TrustVC)',
      );
    }
    expect(remarkJson(plain, ID)).to.deep.equal({
      remark: plain,
      decrypted: { kind: 'plain text', text: 'restored' },
    });
  });

  it('is its bytes when it cannot be read; without a credential nothing is said of them', () => {
    const foreign = encryptRemark('shipped on board', `${ID}0`);
    expect(printRemark(foreign, ID)).to.equal(`${foreign} (cannot be decrypted with this credential)`);
    expect(printRemark(underOwnKey, undefined)).to.equal(underOwnKey);
    expect(remarkJson(underOwnKey, undefined)).to.deep.equal({ remark: underOwnKey });
    expect(printRemark('0x', undefined)).to.equal('');
  });
});

/**
 * 25 to 52 characters of all planes, none of them half a surrogate pair: long enough for no other reading.
 */
function someText(random: SeededRandom): string {
  const planes = [0x7f, 0x7ff, 0xd7ff, 0x10ffff];
  const character = (): string => {
    const point = random.below(random.pick(planes)) + 1;
    return point >= 0xd800 && point <= 0xdfff ? '?' : String.fromCodePoint(point);
  };
  return Array.from({ length: 25 + random.below(28) }, character).join('');
}
