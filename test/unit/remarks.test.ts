import { randomBytes, randomInt } from 'node:crypto';
import { expect } from 'chai';
import { hexlify } from 'ethers';
import { printRemark } from '../../cli/token/token-report';
import { remarkView } from '../../service/answers/token-view';
import { codeOf } from '../../service/base/errors';
import { decryptRemark, encryptRemark } from '../../service/issuance/remarks';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const ID = 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001';

const MANY_IDS = 3_000;

const COMMANDS = '\u001b[2J\u001b[2J';

/** "shipped on board" and COMMANDS as @trustvc/trustvc 2.11.0 encrypts them if its key is empty. */
const UNDER_DEFAULT_KEY = '0xbf714a9eb294dcc44daba65791b5f590';
const COMMANDS_UNDER_DEFAULT_KEY = '0xd74211a4d9aa8aae';

describe('remark of a mint', () => {
  it('is 0x when there is none', () => {
    expect(encryptRemark(undefined, ID)).to.equal('0x');
    expect(encryptRemark('', ID)).to.equal('0x');
  });

  it('is as long as its text in UTF-8, so that 120 bytes fit the contract', () => {
    expect(encryptRemark('é'.repeat(60), ID)).to.have.length(2 + 2 * 120);
  });
});

describe('a remark read from the chain', () => {
  const seed = randomInt(2 ** 32);

  it(`equals the encrypted text for random texts and ids (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const short = ['x', 'ok', '\u{feff}shipped', '\u{1f6a2}'.repeat(30), 'é'.repeat(60), 'a'.repeat(120)];
    const long = [COMMANDS.repeat(10), ...Array.from({ length: 500 }, () => someText(random))];
    for (const text of [...short, ...long]) {
      const id = `urn:uuid:${random.hex(16)}`;
      expect(decryptRemark(encryptRemark(text, id), id)).to.deep.equal({ kind: 'text', text });
    }
  });

  it("is none when it is empty, or the contract's own at the end of a nomination", () => {
    expect(decryptRemark('0x', ID)).to.deep.equal({ kind: 'none' });
    expect(decryptRemark(hexlify(Buffer.from('0x')), ID)).to.deep.equal({ kind: 'none' });
  });

  it('is plain text when it was not encrypted', () => {
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
    it(`is plain text with nearly every credential id although it is short: ${text} (seed ${seed})`, () => {
      const random = seededRandom(seed);
      const remark = hexlify(Buffer.from(text));
      const read = Array.from({ length: MANY_IDS }, () =>
        decryptRemark(remark, `urn:uuid:${random.hex(16)}`),
      );
      const right = read.filter((one) => one.kind === 'plain text' && one.text === text);
      expect(right.length / MANY_IDS).to.be.at.least(atLeast);
    });

  it("is decrypted under the default key of TradeTrust's tools", () => {
    const readable = { kind: 'default key', text: 'shipped on board' };
    expect(decryptRemark(UNDER_DEFAULT_KEY, ID)).to.deep.equal(readable);
    expect(decryptRemark(UNDER_DEFAULT_KEY, undefined)).to.deep.equal(readable);
  });

  it('is undecipherable under another key, or when it is not text', () => {
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

  it('is refused unless it is 0x and an even number of hexadecimal digits, in any case', () => {
    const upper = `0x${encryptRemark('shipped', ID).slice(2).toUpperCase()}`;
    expect(decryptRemark(upper, ID)).to.deep.equal({ kind: 'text', text: 'shipped' });
    for (const wrong of ['0x1', '0xzz', '76', '', '0X76', '0x76 ', 'shipped']) {
      expect(() => decryptRemark(wrong, ID))
        .to.throw('not hexadecimal')
        .and.satisfy((error: unknown) => codeOf(error) === 'REMARK_INVALID');
    }
  });
});

it('a printed remark has a note on its form unless it was encrypted under the credential id', () => {
  const [plain, underOwnKey] = [hexlify(Buffer.from('restored')), encryptRemark('shipped on board', ID)];
  const foreign = encryptRemark('shipped on board', `${ID}0`);
  for (const [remark, id, printed] of [
    [underOwnKey, ID, '"shipped on board"'],
    [underOwnKey, undefined, underOwnKey],
    [foreign, ID, `${foreign} (cannot be decrypted with this credential)`],
    [plain, ID, '"restored" (plain text)'],
    [plain, undefined, '"restored" (plain text)'],
    [UNDER_DEFAULT_KEY, ID, '"shipped on board" (under the default key of TrustVC)'],
    [UNDER_DEFAULT_KEY, undefined, '"shipped on board" (under the default key of TrustVC)'],
    ['0x', undefined, ''],
  ] as const)
    expect(printRemark(remark, id)).to.equal(printed);
  const decrypted = { kind: 'plain text', text: 'restored' };
  expect(remarkView(plain, ID)).to.deep.equal({ remark: plain, decrypted });
  expect(remarkView(underOwnKey, undefined)).to.deep.equal({ remark: underOwnKey });
});

/**
 * 25 to 52 characters of all planes, without lone surrogates: long enough to have only one reading.
 */
function someText(random: SeededRandom): string {
  const planes = [0x7f, 0x7ff, 0xd7ff, 0x10ffff];
  const character = (): string => {
    const point = random.below(random.pick(planes)) + 1;
    return point >= 0xd800 && point <= 0xdfff ? '?' : String.fromCodePoint(point);
  };
  return Array.from({ length: 25 + random.below(28) }, character).join('');
}
