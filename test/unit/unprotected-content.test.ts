import { expect } from 'chai';
import { findUnprotectedContent, unprotectedContentIn } from '../../service/issuance/unprotected-content';
import full from '../fixtures/bill-of-lading-full.json';

/** Parses a subject as a request does, so that keys such as `__proto__` are its own. */
const parse = (text: string): unknown => JSON.parse(text);
const foundIn = (subject: unknown) => findUnprotectedContent(subject, 'part');
const pointerIn = (subject: unknown): string | undefined => foundIn(subject)?.pointer;

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
    [{ a: { '@value': 'x', '@language': 7 } }, '/a/@value', /JSON-LD/],
    [{ a: { '@value': 'x' } }, '/a/@value', /JSON-LD/],
    [{ a: { '@value': '_:x', '@language': 'en' } }, '/a/@value', /"_:"/],
    [{ a: ['x', ['y']] }, '/a/1', /list in a list/],
  ] as [unknown, string, RegExp][])
    it(`includes ${pointer} of ${JSON.stringify(subject)}: ${String(problem)}`, () => {
      const found = foundIn(subject);
      expect(found?.pointer).to.equal(pointer);
      expect(found?.problem).to.match(problem);
      expect(found?.code).to.equal('TEXT_NOT_PROTECTED');
    });

  it('includes the list that has one text too many for libraries, which compare all of a list', () => {
    const texts = Array.from({ length: 1_000 }, (_, index) => `${'x'.repeat(2_490)}${index}`);
    const lists = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, texts]));
    const packages = [{ a: texts }, { a: texts }];
    expect(pointerIn(lists)).to.equal('/e');
    expect(pointerIn({ ...lists, e: 'x' })).to.equal(undefined);
    expect(pointerIn({ a: texts, b: texts, packages, e: texts })).to.equal('/e');
    const found = foundIn(lists);
    expect(found?.code).to.equal('BODY_TOO_COMPLEX');
    expect(found?.problem).to.match(/join them/);
  });

  it('is not in the largest documents whose texts are compared little', () => {
    const long = 'x'.repeat(5_200);
    const rows = Array.from({ length: 9_960 }, (_, index) => ({ packagesDescription: long + index }));
    const small = Array.from({ length: 3_000 }, (_, index) => ({ packagesWeight: `${index} KG` }));
    const attachments = [{ data: 'JVBERi0xLjcK/+9='.repeat(33_000_000 / 16), filename: 'a.pdf' }];
    const ports = Array.from({ length: 19_000 }, (_, index) => `port ${index}`);
    for (const subject of [{ packages: rows }, { packages: small, attachments }, { links: ports }])
      expect(pointerIn(subject)).to.equal(undefined);
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
    expect(foundIn(nested(100_000))?.problem).to.match(/nested deeper than 100/);
  });

  it('is listed completely, except inside a part that is refused as a whole', () => {
    const list = Array.from({ length: 200_000 }, (_, index) => ({ w: `${index}` }));
    const subject = { '@graph': { a: '_:1' }, a: ['x', '_:2', 'x'], b: { c: '_:3' }, list };
    expect([...unprotectedContentIn(subject, 'part')].map(({ pointer }) => pointer)).to.deep.equal([
      '/@graph',
      '/a/1',
      '/b/c',
    ]);
  });

  it('does not include the content of honest documents', () => {
    const honest: unknown[] = [
      full.credentialSubject,
      { a: '_', b: ': _ :', c: 'urn:x', d: 1, e: null, f: '', g: [], h: {}, i: true, j: '🚢 提单' },
      { a: [0, -1.5, 0.1, 1.5e-7, 9007199254740991], b: [null, null], packages: [{ w: '1' }, { w: '1' }] },
      {
        name: [
          { '@value': 'x', '@language': 'en' },
          { '@value': 'x', '@language': 'de' },
        ],
      },
      { id: 'did:web:carrier.example', type: ['BillOfLading', 'https://carrier.example/Bill'] },
      { id: 'https://carrier.example/提单/1', links: 'https://carrier.example/提单/1' },
      parse('{"constructor":"x","toString":"y","hasOwnProperty":"z","":"e"}'),
    ];
    for (const subject of honest) expect(foundIn(subject)).to.equal(undefined);
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
      findUnprotectedContent({ ...credential, credentialSubject: {}, ...changes }, 'credential')?.pointer;

    it('includes neither the URLs of contexts nor the proof, but an embedded context', () => {
      expect(pointerWith({})).to.equal(undefined);
      expect(pointerWith({ '@context': 'https://www.w3.org/ns/credentials/v2' })).to.equal(undefined);
      expect(pointerWith({ '@context': [...credential['@context'], { seen: null }] })).to.equal('/@context');
    });
  });
});
