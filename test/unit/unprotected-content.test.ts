import { expect } from 'chai';
import { findUnprotectedContent } from '../../service/issuance/unprotected-content';

describe('content that a signature would not protect', () => {
  const pointerIn = (subject: unknown): string | undefined => findUnprotectedContent(subject)?.pointer;

  it('is found in a value, with its JSON pointer', () => {
    expect(pointerIn({ packages: [{ 'a/b~c': 'PO_:123' }] })).to.equal('/packages/0/a~1b~0c');
  });

  it('is found in a key', () => {
    expect(pointerIn({ '_:b0': 'x' })).to.equal('/_:b0');
  });

  it('is half of a surrogate pair, but not a whole one', () => {
    expect(findUnprotectedContent({ a: '\ud800' })).to.include({ pointer: '/a', code: 'TEXT_NOT_PROTECTED' });
    expect(pointerIn({ a: '🚢 提单' })).to.equal(undefined);
  });

  it('is an @index', () => {
    expect(pointerIn({ a: { '@value': '1', '@index': 'x' } })).to.equal('/a/@index');
  });

  it('is a number that would come back another', () => {
    for (const text of ['1e400', '12345678901234567890123', '-9007199254740993']) {
      expect(pointerIn(JSON.parse(`{"a":${text}}`)), text).to.equal('/a');
    }
    expect(pointerIn({ a: [0, -1.5, 9007199254740991] })).to.equal(undefined);
  });

  it('is not an underscore and a colon that stand apart', () => {
    expect(pointerIn({ a: '_', b: ': _ :', c: 'urn:x', d: 1, e: null })).to.equal(undefined);
  });

  it('is refused beyond a hundred levels, however deep it goes', () => {
    const nested = (levels: number): unknown => {
      let value: unknown = 'x';
      for (let level = 0; level < levels; level++) value = [value];
      return value;
    };
    expect(pointerIn(nested(100))).to.equal(undefined);
    expect(findUnprotectedContent(nested(100_000))?.problem).to.match(/nested deeper than 100/);
  });
});
