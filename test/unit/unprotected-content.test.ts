import { expect } from 'chai';
import { findUnprotectedContent, unprotectedContentIn } from '../../service/issuance/unprotected-content';
import full from '../fixtures/bill-of-lading-full.json';

/** Parses a subject as a request does, so that keys such as `__proto__` are its own. */
const parse = (text: string): unknown => JSON.parse(text);
const pointerIn = (subject: unknown): string | undefined => findUnprotectedContent(subject)?.pointer;

describe('content that a signature would not protect', () => {
  const refused: [what: string, subject: unknown, pointer: string, problem: RegExp][] = [
    ['a blank node in a value', { packages: [{ 'a/b~c': 'PO_:123' }] }, '/packages/0/a~1b~0c', /"_:"/],
    ['a blank node in a key', { '_:b0': 'x' }, '/_:b0', /"_:"/],
    ['a blank node as id', { id: '_:b0' }, '/id', /"_:"/],
    ['the name of a blank node', { a: 'see <urn:bnid:x>' }, '/a', /"urn:bnid:"/],
    ['a lone surrogate', { a: 'x\ud800' }, '/a', /surrogate/],
    ['a lone surrogate in a key', { '\udc00': 1 }, '/\udc00', /surrogate/],
    ['an annotation', { a: { '@value': '1', '@index': 'x' } }, '/a/@value', /JSON-LD/],
    ['a context of its own', { '@context': 'https://www.w3.org/ns/credentials/v2' }, '/@context', /JSON-LD/],
    ['a JSON-LD keyword as a key', { '@vocab': 'x' }, '/@vocab', /JSON-LD/],
    [
      'an IRI as a key',
      { 'https://example.com/terms#vessel': 'x' },
      '/https:~1~1example.com~1terms#vessel',
      /term/,
    ],
    ['a __proto__ key', parse('{"a":{"__proto__":{"b":"x"}}}'), '/a/__proto__', /JavaScript/],
    ['a proof', { proof: {} }, '/proof', /graph/],
    ['a credential inside', { a: { verifiableCredential: {} } }, '/a/verifiableCredential', /graph/],
    ['a list in a list', { a: ['x', ['y']] }, '/a/1', /list in a list/],
    ['a repeated literal', { a: ['x', 'y', 'x'] }, '/a/2', /more than once/],
    ['a literal repeated as another type', { a: ['5', 5] }, '/a/1', /more than once/],
    ['one id of two objects', { a: [{ id: 'urn:a' }, { id: 'urn:a' }] }, '/a/1/id', /another object/],
    ['an object with the id of its parent', { id: 'urn:a', a: { id: 'urn:a' } }, '/a/id', /another object/],
    ['an id with a space', { id: 'urn: a' }, '/id', /IRI/],
    ['a type with angle brackets', { type: ['A', 'urn:a><b'] }, '/type', /IRI/],
    ['a compact IRI as an id', { id: 'xsd:integer' }, '/id', /IRI/],
  ];
  for (const [what, subject, pointer, problem] of refused) {
    it(`includes ${what}`, () => {
      const found = findUnprotectedContent(subject);
      expect(found?.pointer).to.equal(pointer);
      expect(found?.problem).to.match(problem);
    });
  }

  it('includes a number that would be signed as another one', () => {
    const numbers = '1e400 12345678901234567890123 -9007199254740993 1e-7 0.30000000000000004 -0'.split(' ');
    for (const text of numbers) expect(pointerIn(parse(`{"a":${text}}`)), text).to.equal('/a');
  });

  it('includes nesting deeper than 100 levels, even of 100,000', () => {
    const nested = (levels: number): unknown => {
      let value: unknown = 'x';
      for (let level = 0; level < levels; level++) value = { a: value };
      return value;
    };
    expect(pointerIn(nested(100))).to.equal(undefined);
    expect(findUnprotectedContent(nested(100_000))?.problem).to.match(/nested deeper than 100/);
  });

  it('is reported at its first place', () => {
    expect(pointerIn({ a: { b: ['x', '_:1'] }, c: '_:2' })).to.equal('/a/b/1');
  });

  it('is listed completely, except inside a part that is refused as a whole', () => {
    const list = Array.from({ length: 200_000 }, (_, index) => ({ w: `${index}` }));
    const subject = { '@graph': { a: '_:1' }, a: ['x', '_:2', 'x'], b: { c: '_:3' }, list };
    expect([...unprotectedContentIn(subject)].map(({ pointer }) => pointer)).to.deep.equal([
      '/@graph',
      '/a/2',
      '/a/1',
      '/b/c',
    ]);
  });

  it('does not include the content of honest documents', () => {
    const honest: unknown[] = [
      full.credentialSubject,
      { a: '_', b: ': _ :', c: 'urn:x', d: 1, e: null, f: '', g: [], h: {}, i: true, j: '🚢 提单' },
      { a: [0, -1.5, 0.1, 1.5e-7, 9007199254740991], b: [null, null], packages: [{ w: '1' }, { w: '1' }] },
      { id: 'did:web:carrier.example', type: ['BillOfLading', 'https://carrier.example/Bill'] },
      { id: 'https://carrier.example/提单/1', links: 'https://carrier.example/提单/1' },
      parse('{"constructor":"x","toString":"y","hasOwnProperty":"z","":"e"}'),
    ];
    for (const subject of honest) expect(findUnprotectedContent(subject)).to.equal(undefined);
  });

  describe('in a whole credential', () => {
    const credential = {
      '@context': ['https://www.w3.org/ns/credentials/v2'],
      id: 'urn:uuid:1',
      renderMethod: [{ id: 'https://renderer.example' }],
      issuer: 'did:web:issuer.example',
      proof: { proofValue: 'u_:', '@context': {} },
    };
    const pointerWith = (changes: object): string | undefined =>
      pointerIn({ ...credential, credentialSubject: {}, ...changes });

    it('includes neither the URLs of contexts nor the proof', () => {
      expect(pointerWith({})).to.equal(undefined);
      expect(pointerWith({ '@context': 'https://www.w3.org/ns/credentials/v2' })).to.equal(undefined);
    });

    it('includes an embedded context', () => {
      expect(pointerWith({ '@context': [...credential['@context'], { seen: null }] })).to.equal('/@context');
    });

    it('includes an object with the id of the credential, the issuer or another part', () => {
      for (const id of [credential.id, credential.issuer, 'https://renderer.example']) {
        expect(pointerWith({ credentialSubject: { a: { id } } }), id).to.equal('/credentialSubject/a/id');
      }
    });

    it('includes a proof in any other place', () => {
      expect(pointerWith({ credentialSubject: { proof: {} } })).to.equal('/credentialSubject/proof');
    });
  });
});
