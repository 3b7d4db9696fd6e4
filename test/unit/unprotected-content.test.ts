import { expect } from 'chai';
import { findUnprotectedContent, unprotectedContentIn } from '../../service/issuance/unprotected-content';
import full from '../fixtures/bill-of-lading-full.json';

/** Parses a subject as a request does, so that keys such as `__proto__` are its own. */
const parse = (text: string): unknown => JSON.parse(text);
const pointerIn = (subject: unknown): string | undefined => findUnprotectedContent(subject)?.pointer;

describe('content that a signature would not protect', () => {
  const vocabulary = 'https://example.com/terms#vessel';
  for (const [subject, pointer, problem] of [
    [{ packages: [{ 'a/b~c': 'PO_:123' }] }, '/packages/0/a~1b~0c', /"_:"/],
    [{ '_:b0': 'x' }, '/_:b0', /"_:"/],
    [{ id: '_:b0' }, '/id', /"_:"/],
    [{ a: 'see <urn:bnid:x>' }, '/a', /"urn:bnid:"/],
    [{ a: 'x\ud800' }, '/a', /surrogate/],
    [{ '\udc00': 1 }, '/\udc00', /surrogate/],
    [{ a: { '@value': '1', '@index': 'x' } }, '/a/@value', /JSON-LD/],
    [{ '@context': 'https://www.w3.org/ns/credentials/v2' }, '/@context', /JSON-LD/],
    [{ '@vocab': 'x' }, '/@vocab', /JSON-LD/],
    [{ [vocabulary]: 'x' }, '/https:~1~1example.com~1terms#vessel', /term/],
    [parse('{"a":{"__proto__":{"b":"x"}}}'), '/a/__proto__', /JavaScript/],
    [{ proof: {} }, '/proof', /graph/],
    [{ a: { verifiableCredential: {} } }, '/a/verifiableCredential', /graph/],
    [{ a: ['x', ['y']] }, '/a/1', /list in a list/],
    [{ a: ['x', 'y', 'x'] }, '/a/2', /more than once/],
    [{ a: ['5', 5] }, '/a/1', /more than once/],
    [{ a: [{ id: 'urn:a' }, { id: 'urn:a' }] }, '/a/1/id', /another object/],
    [{ id: 'urn:a', a: { id: 'urn:a' } }, '/a/id', /another object/],
    [{ id: 'urn: a' }, '/id', /IRI/],
    [{ type: ['A', 'urn:a><b'] }, '/type', /IRI/],
    [{ id: 'xsd:integer' }, '/id', /IRI/],
  ] as [unknown, string, RegExp][])
    it(`includes ${pointer} of ${JSON.stringify(subject)}: ${String(problem)}`, () => {
      const found = findUnprotectedContent(subject);
      expect(found?.pointer).to.equal(pointer);
      expect(found?.problem).to.match(problem);
      const isInvalid = String(problem) === '/IRI/';
      expect(found?.code).to.equal(isInvalid ? 'SUBJECT_VALUE_INVALID' : 'TEXT_NOT_PROTECTED');
    });

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

    it('includes neither the URLs of contexts nor the proof, but an embedded context', () => {
      expect(pointerWith({})).to.equal(undefined);
      expect(pointerWith({ '@context': 'https://www.w3.org/ns/credentials/v2' })).to.equal(undefined);
      expect(pointerWith({ '@context': [...credential['@context'], { seen: null }] })).to.equal('/@context');
    });

    it('includes an object with the id of another part, and a proof in any other place', () => {
      for (const id of [credential.id, credential.issuer, 'https://renderer.example'])
        expect(pointerWith({ credentialSubject: { a: { id } } }), id).to.equal('/credentialSubject/a/id');
      expect(pointerWith({ credentialSubject: { proof: {} } })).to.equal('/credentialSubject/proof');
    });
  });
});
