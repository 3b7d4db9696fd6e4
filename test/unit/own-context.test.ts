import { expect } from 'chai';
import { BILL_OF_LADING_CONTEXT, readContextFile } from '../../service/base/published-files';
import type { JsonObject } from '../../service/issuance/credential';
import { createCredentialSigner } from '../../service/issuance/sign';
import { examineContext } from '../../service/validation/examine-context';
import { credentialAround, jsonLdProblems, loaderWith } from '../../service/validation/json-ld-problems';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { randomContext } from '../helpers/credentials/random-contexts';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';
import { readDocument } from '../helpers/pages/markdown';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';
import transportDocument from '../fixtures/transport-document.json';
import transportDocumentContext from '../fixtures/transport-document-context.json';

const T = (name: string): string => `https://carrier.example/terms#${name}`;
const XSD = 'http://www.w3.org/2001/XMLSchema#';

/** A context of terms, each within the context of the one before. */
function nested(levels: number): JsonObject {
  return { X: { '@id': T('X'), ...(levels > 1 && { '@context': nested(levels - 1) }) } };
}

/** All faults of a file, as one text. */
async function findingsIn(file: unknown): Promise<string> {
  const text = typeof file === 'string' ? file : JSON.stringify({ '@context': file });
  return (await examineContext(Buffer.from(text))).join('\n');
}

describe('the file of a context of the issuer', () => {
  for (const [what, context] of [
    [
      'terms, types and prefixes',
      { c: T(''), xsd: XSD, a: 'c:a', on: { '@id': 'c:on', '@type': 'xsd:date' } },
    ],
    ['a prefix that comes after the term that needs it', { a: 'c:a', c: T('') }],
    [
      'terms for a type, and for objects in it',
      { B: { '@id': T('B'), '@context': { p: party({ a: T('a') }) } } },
    ],
    // https://github.com/mattrglobal/jsonld-signatures-bbs/issues/175
    [
      'a type whose context has id, type and a prefix',
      {
        '@protected': true,
        Route: {
          '@id': T('Route'),
          '@context': { '@protected': true, id: '@id', type: '@type', c: T(''), leg: 'c:leg' },
        },
      },
    ],
    ['two terms of one meaning', { shipper: T('s'), consignor: T('s'), Kind: T('K'), Type: T('K') }],
    ['every word', { '@vocab': T('') }],
    [
      'a double, a JSON value, an IRI, a language',
      {
        weight: { '@id': T('w'), '@type': `${XSD}double` },
        raw: { '@id': T('r'), '@type': '@json' },
        site: { '@id': T('site'), '@type': '@id' },
        note: { '@id': T('note'), '@language': 'en' },
      },
    ],
    [
      'another meaning of a protected term, for one property',
      { geo: party({ type: T('geoType'), Point: T('Point') }) },
    ],
    [
      'terms with the names of the credential that only the credential has',
      { issuer: T('issuer'), Pass: { '@id': T('P'), '@context': { credentialSubject: T('cs') } } },
    ],
    ['a term that is taken back', { a: T('a'), b: null }],
    ['a transport document', transportDocumentContext['@context']],
    [
      'the terms of this release',
      (JSON.parse(readContextFile(BILL_OF_LADING_CONTEXT).toString()) as JsonObject)['@context'],
    ],
  ] as [string, unknown][])
    it(`is accepted with ${what}`, async () => {
      expect(await findingsIn(context)).to.equal('');
    });

  for (const [what, file, ...sentences] of [
    ['is not JSON', '{', /^is not JSON: line 1, column 2: /],
    ['is empty', '', /^is not JSON: it is empty$/],
    ['has a name twice', '{"@context":{"a":"urn:x:a","a":"urn:x:b"}}', /twice/],
    ['has no context', '{"a": 1}', /^has no "@context" that defines terms$/],
    ['defines nothing', { '@version': 1.1 }, /^has no "@context" that defines terms$/],
    ['nests contexts too deep', nested(40), /is nested in more than 10 contexts; define fewer/],
    ['is a URL', 'https://schema.org/', /^is not JSON: line 1, column 1: /],
    [
      'begins with the URL of another',
      ['https://schema.org/', { a: T('a') }],
      /^\/@context names another file; copy its terms\. .*schema\.org/,
    ],
    [
      'imports another',
      { '@version': 1.1, '@import': 'https://schema.org/', a: T('a') },
      /^\/@context names another file.*schema\.org/,
    ],
    [
      'names another for a type',
      { a: T('a'), B: { '@id': T('B'), '@context': 'https://schema.org/' } },
      /^\/@context\/B needs .* may name no other file$/,
    ],
    // https://github.com/w3c/vc-data-model/issues/1500
    [
      'defines the protected name and description for a type of its own',
      { Entity: { '@id': T('E'), '@context': { name: T('n'), description: T('d'), size: T('size') } } },
      /^\/@context\/Entity\/@context\/name defines "name" anew, which an earlier context protects; choose another name$/m,
      /^\/@context\/Entity\/@context\/description defines "description" anew/m,
    ],
    ['defines id as something else', { id: T('id'), a: T('a') }, /^\/@context\/id defines "id" anew/],
    [
      'has words in the place of IRIs',
      { a: 'a', on: { '@id': T('on'), '@type': 'date' }, c: T('c') },
      /^\/@context\/a needs absolute IRIs/m,
      /^\/@context\/on needs absolute IRIs/m,
    ],
    [
      'has maps, lists and graphs',
      {
        seals: { '@id': T('seals'), '@container': '@index' },
        legs: { '@id': T('legs'), '@container': '@list' },
        Cargo: { '@id': T('Cargo'), '@context': { claims: { '@id': T('claims'), '@container': '@graph' } } },
      },
      /^\/@context\/seals has the container @index of JSON-LD: /m,
      /^\/@context\/legs has the container @list/m,
      /^\/@context\/Cargo\/@context\/claims has the container @graph/m,
    ],
    [
      'has another word for type',
      { kind: '@type', a: T('a') },
      /^\/@context\/kind has "kind": "@type" of JSON-LD: .* no version be derivable/,
    ],
    [
      'has a base or a direction',
      { '@base': 'https://x.example/', '@direction': 'rtl', a: T('a') },
      /@base/,
      /@direction/,
    ],
    ['clears the contexts before it', [null, { a: T('a') }], /^\/@context Tried to nullify/],
    ['needs another version', { '@version': 1.0, a: T('a') }, /^\/@context Unsupported JSON-LD version/],
    [
      'has a reserved word',
      { '@sealed': T('s'), a: T('a') },
      /^\/@context Terms beginning with "@" are reserved/,
    ],
  ] as [string, unknown, ...RegExp[]][])
    it(`is refused if it ${what}, with a sentence for each fault`, async () => {
      const found = await findingsIn(file);
      expect(found.split('\n')).to.have.lengthOf(sentences.length);
      for (const sentence of sentences) expect(found).to.match(sentence);
    });
});

/** A term for objects that have terms of their own. */
function party(terms: JsonObject): JsonObject {
  return { '@id': T('party'), '@context': terms };
}

describe('a document under a context of the issuer', () => {
  let issuer: TestIssuer;

  before(async () => {
    issuer = await createTestIssuer();
  });

  /** Signs, derives these parts and verifies. Returns the derived credential. */
  async function issue(subject: JsonObject, context: unknown, reveal = ['']): Promise<JsonObject> {
    const loader = loaderWith({ '@context': context });
    const sign = await createCredentialSigner(issuer.keyPair, loader);
    const signed = await sign(credentialAround(subject, true), new Date('2026-01-01T00:00:00Z'));
    const derived = await deriveCredential({ ...signed }, reveal, loader);
    const sources = fakeSources(issuer, { knownContexts: loader });
    const { documentIntegrity } = await verifyCredential(derived, sources);
    expect(documentIntegrity.outcome, JSON.stringify(documentIntegrity.checks)).to.equal('valid');
    return derived;
  }

  it('may be a whole transport document, of which a version shows one seal', async () => {
    const context = transportDocumentContext['@context'];
    expect(await validateBillOfLading(transportDocument, transportDocumentContext)).to.deep.equal([]);
    expect((await issue(transportDocument, context)).credentialSubject).to.deep.equal(transportDocument);
    const seal = '/credentialSubject/utilizedTransportEquipments/1/seals/0/number';
    const { credentialSubject } = await issue(transportDocument, context, [seal]);
    expect(credentialSubject).to.deep.equal({
      type: ['BillOfLading', 'TransportDocument'],
      utilizedTransportEquipments: [{ seals: [{ number: 'SEAL-0412' }] }],
    });
  });

  it('may have objects with terms of their own, as docs/contexts.md says', async () => {
    const page = readDocument('docs/contexts.md');
    const [term, subject] = [1, 2].map((number) => {
      return JSON.parse(
        page.section('Terms inside objects').text.split('```json')[number]?.split('```')[0] ?? '',
      ) as JsonObject;
    });
    const file = JSON.parse(readContextFile(BILL_OF_LADING_CONTEXT).toString()) as {
      '@context': { BillOfLading: { '@context': JsonObject } };
    };
    const missing = { scac: 'SGPU', blNumber: 'SG1', type: ['BillOfLading'] };
    const asked = { ...missing, ...subject };
    expect((await jsonLdProblems(asked)).map(({ pointer }) => pointer)).to.deep.equal(['/notifyParty']);
    Object.assign(file['@context'].BillOfLading['@context'], term);
    expect(await validateBillOfLading(asked, file)).to.deep.equal([]);
    expect((await issue(asked, file['@context'])).credentialSubject).to.deep.equal(asked);
  });

  it('may have a text that equals an id, which alone is told if it is not absolute', async () => {
    const problems = await jsonLdProblems({ id: 'BL-1', type: ['BillOfLading'], blNumber: 'BL-1' });
    expect(problems.map(({ pointer }) => pointer)).to.deep.equal(['/id']);
  });

  it('may have undefined names of any length and depth: the first hundred problems are told', async () => {
    let inner: unknown = Array.from({ length: 15_000 }, (_, index) => index);
    for (let level = 0; level < 90; level++) inner = { ['x'.repeat(2_000)]: inner };
    const [first, ...others] = await jsonLdProblems({ type: ['BillOfLading'], deep: inner });
    expect(first?.pointer).to.equal('/deep');
    expect(others).to.have.length(0);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, index]));
    expect(await jsonLdProblems({ type: ['BillOfLading'], ...many })).to.have.length(100);
  });

  it('has every undefined name told with its place, by validation and by signing', async () => {
    const context = {
      BillOfLading: {
        '@id': T('B'),
        '@context': { agentName: T('agentName'), party: T('party'), parties: T('parties') },
      },
    };
    const subject = {
      type: ['BillOfLading', 'Invoice'],
      agentName: 'A',
      vesel: 'x',
      2024: 'y',
      empty: null,
      none: [],
      party: { agentName: 'B', party: { agentName: 'C' } },
      parties: [{ id: 'urn:x:1' }, { type: ['BillOfLading'], agentName: 'D', nmae: 'E' }],
    };
    const problems = await jsonLdProblems(subject, { '@context': context });
    expect(problems.map(({ pointer }) => pointer)).to.have.members([
      '/type',
      '/vesel',
      '/2024',
      '/empty',
      '/none',
      '/party/agentName',
      '/party/party',
      '/parties/1/nmae',
    ]);
    const scoped = problems.find(({ pointer }) => pointer === '/party/agentName');
    expect(scoped?.message).to.match(
      /^Is the term "agentName", which https:\S+ defines for "BillOfLading" only; the terms of a type end .*"@context"/,
    );
    const refusal = await issue(subject, context).catch((error: Error) => error);
    expect(refusal).to.have.property('code', 'SUBJECT_TERM_UNDEFINED');
    for (const { pointer, message } of problems)
      expect((refusal as Error).message).to.contain(
        `/credentialSubject${pointer} ${message.charAt(0).toLowerCase()}${message.slice(1)}`,
      );
  });

  // A test of all seeds would take minutes while others run.
  for (const first of [1, 51, 101, 151])
    it(`fails at no step if the file was accepted: 50 random contexts from ${first}`, async () => {
      let accepted = 0;
      for (let seed = first; seed < first + 50; seed++) {
        const random = seededRandom(seed);
        const context = randomContext(random, random.chance(0.1) ? 'any' : 'signed', 1);
        if ((await findingsIn(context)) !== '') continue;
        accepted++;
        const type = random.pick([undefined, 'T', 'U']);
        const terms = { ...context, ...membersOf(membersOf(membersOf(context)[type ?? ''])['@context']) };
        const subject = { ...(type && { type }), ...subjectUnder(terms, random, { values: 0 }) };
        const reveal = random.chance(0.5)
          ? ['']
          : Object.keys(subject).map((name) => `/credentialSubject/${name}`);
        if (Object.keys(subject).length === 0) continue;
        await issue(subject, context, reveal).catch((error: Error) => {
          throw new Error(`seed ${seed}: ${JSON.stringify({ context, subject })}`, { cause: error });
        });
      }
      expect(accepted).to.be.greaterThan(20);
    });
});

/** An object with some of the terms that a context defines, each with its own meaning and value. */
function subjectUnder(context: JsonObject, random: SeededRandom, count: { values: number }): JsonObject {
  const meanings = new Set<unknown>();
  const members = Object.entries(context).flatMap(([name, definition]) => {
    const { '@id': id = definition, '@context': scoped } = membersOf(definition);
    const { '@type': type } = membersOf(definition);
    // jsonld 9 reads a term's values in a list by the definition in its own context, if there is one.
    if (name in membersOf(scoped)) return [];
    const isNoTerm = name.startsWith('@') || definition === null || String(id).startsWith('@');
    if (isNoTerm || /^[A-Z]/.test(name) || meanings.size === meanings.add(id).size) return [];
    if (random.chance(0.3)) return [];
    const isIri = type === '@id' || type === '@vocab';
    const value = (): unknown => {
      const number = count.values++;
      if (isIri) return `urn:x:${number}`;
      return random.pick<unknown>(
        [`text ${number}`, number, number + 0.5].slice(type?.toString().endsWith('double') ? 1 : 0),
      );
    };
    const inner = subjectUnder(membersOf(scoped), random, count);
    return [[name, random.pick([value(), [value(), value()], [inner, value()], inner])] as [string, unknown]];
  });
  return Object.fromEntries(members.filter(([, value]) => JSON.stringify(value) !== '{}'));
}

function membersOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}
