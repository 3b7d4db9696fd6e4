import { expect } from 'chai';
import { findUnprotectedText } from '../../service/issuance/unprotected-text';

describe('text that a signature would not protect', () => {
  it('is found in a value, with its JSON pointer', () => {
    expect(findUnprotectedText({ packages: [{ 'a/b~c': 'PO_:123' }] })).to.equal('/packages/0/a~1b~0c');
  });

  it('is found in a key', () => {
    expect(findUnprotectedText({ '_:b0': 'x' })).to.equal('/_:b0');
  });

  it('is not found where an underscore and a colon stand apart', () => {
    expect(findUnprotectedText({ a: '_', b: ': _ :', c: 'urn:x', d: 1, e: null })).to.equal(undefined);
  });

  it('is found however deep the input is nested', () => {
    let nested: unknown = '_:x';
    for (let depth = 0; depth < 100_000; depth++) nested = [nested];
    expect(findUnprotectedText(nested)).to.be.a('string');
  }).timeout(30_000);
});
