import { expect } from 'chai';
import * as jsonld from 'jsonld';
import type { DocumentLoader } from '../../service/issuance/document-loader';
import { PreparedContexts } from '../../service/issuance/prepared-contexts';
import { membersIn, unsignedContentIn } from '../../service/issuance/signed-content';
import { findUnprotectedContent } from '../../service/issuance/unprotected-content';
import {
  FEW_TERMS,
  loaderWith,
  ownCredential,
  OWN_CONTEXT_URL,
  randomContext,
  randomObject,
} from '../helpers/credentials/random-contexts';
import type { Members } from '../helpers/credentials/random-subjects';
import { ISSUER } from '../helpers/credentials/unchecked-issuer';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

/** The first refused content, with its problem; '' if there is none. Undefined if JSON-LD refuses it. */
async function problemOf(document: Members, documentLoader: DocumentLoader): Promise<string | undefined> {
  const options = { documentLoader, contextResolver: new PreparedContexts() };
  try {
    const spelt = findUnprotectedContent(document, 'credential');
    const found = spelt ?? (await unsignedContentIn(document, options))[0];
    return found ? `${found.pointer} ${found.problem}` : '';
  } catch {
    return undefined;
  }
}

/** Undefined if JSON-LD refuses the document. */
async function statementsOf(document: Members, documentLoader: DocumentLoader): Promise<string | undefined> {
  const options = {
    algorithm: 'RDFC-1.0',
    safe: true,
    rdfDirection: 'i18n-datatype',
    documentLoader,
  } as const;
  return jsonld.canonize(document, options).catch(() => undefined);
}

describe('content that the contexts of a document leave unsigned', () => {
  const x = (name: string): string => `https://x.example/#${name}`;
  const index = { '@id': x('a'), '@container': '@index' };
  const double = { '@id': x('a'), '@type': 'http://www.w3.org/2001/XMLSchema#double' };
  const json = { '@id': x('json'), '@type': '@json' };
  const typed = (term: unknown): object => ({ T: { '@id': x('T'), '@context': { a: term } } });
  for (const [what, context, subject, pointer] of [
    ['the keys of a map by @index', { a: index }, { a: { k: { b: 'x' } } }, '/a'],
    ['its keys, if a type defines it', typed(index), { type: 'T', a: { k: { b: 'x' } } }, '/a'],
    [
      'the keys of a map by a property',
      { a: { ...index, '@index': 'b' } },
      { a: { k: { id: 'urn:x:1' } } },
      '/a',
    ],
    [
      'the key of an object with an id',
      { a: { '@id': x('a'), '@container': '@id' } },
      { a: { T: { id: 'urn:x:2' } } },
      '/a',
    ],
    [
      'a name without a value, beside the id in a map by id',
      { a: { '@id': x('a'), '@container': '@id', '@type': '@id' } },
      { a: { id: 'urn:x:1', 'SEAL-EVIL': [], 'released to Mallory': null } },
      '/a',
    ],
    [
      'a name without a value, alone in a map by id',
      { a: { '@id': x('a'), '@container': '@id', '@type': '@id' } },
      { a: { 'released to Mallory': null } },
      '/a',
    ],
    [
      'the keys of a map of graphs by id',
      { a: { '@id': x('a'), '@container': ['@graph', '@id'], '@type': '@id' } },
      { a: { T: null } },
      '/a',
    ],
    ['a map by type', { a: { '@id': x('a'), '@container': '@type' } }, { a: { T: { b: 'x' } } }, '/a'],
    ['a graph', { a: { '@id': x('a'), '@container': '@graph' } }, { a: { b: 'x' } }, '/a'],
    ['a list in order', { a: { '@id': x('a'), '@container': '@list' } }, { a: ['x', 'y'] }, '/a'],
    ['a value of an alias of @index', { a: '@index' }, { a: 'x', b: 'y' }, '/a'],
    ['the name of an alias of @nest', { a: '@nest' }, { a: { b: 'x' } }, '/a'],
    ['the name of an alias of @set', { a: '@set' }, { b: { a: ['x'] } }, '/b/a'],
    ['an alias of @value', { a: '@value' }, { b: { a: 'x' } }, '/b/a'],
    ['an alias of @included', { a: '@included' }, { a: { b: 'x' } }, '/a'],
    ['a reversed property', { a: { '@reverse': x('a') } }, { a: { b: 'x' } }, '/a'],
    ['the direction of a text', { a: { '@id': x('a'), '@direction': 'rtl' } }, { a: 'x' }, '/a'],
    ['which of two terms has a value', { a: x('b') }, { a: 'x', b: 'y' }, ''],
    [
      'which of two terms has a value, where a JSON value is null',
      { a: x('b'), json },
      { a: 'x', b: 'y', json: null },
      '',
    ],
    [
      'which of two terms has a value in a map by type',
      { a: { '@id': x('a'), '@container': '@type' }, c: x('b') },
      { a: { T: { b: 'x', c: 'y' } } },
      '/a',
    ],
    ['how often a text is there', { a: x('a') }, { a: ['x', 'y', 'x'] }, '/a'],
    ['how often a number is there, as text or not', { a: x('a') }, { a: ['5', 5] }, '/a'],
    [
      'which of two objects has a member',
      { a: x('a') },
      { a: [{ id: 'urn:a' }, { id: 'urn:a' }] },
      '/a/1/id',
    ],
    ['which of two objects, one in the other', {}, { id: 'urn:a', b: { id: 'urn:a' } }, '/id'],
    ["a member of the issuer or of the issuer's namesake", {}, { id: ISSUER, b: 'x' }, '/id'],
    ['an id that is no IRI', {}, { id: 'urn:a<b', b: 'x' }, '/id'],
    ['a type that is no IRI', {}, { type: ['T', 'urn:a><b'], b: 'x' }, '/type'],
    ['the text behind a number', { a: double }, { a: '5 t' }, '/a'],
    ['a text that is no number', { a: double }, { a: 'five' }, '/a'],
    ['a text that is a number of another notation', { a: double }, { a: '0x10' }, '/a'],
    ['an empty text for a number', { a: double }, { a: '' }, '/a'],
    [
      'how often an id is there, alone and in an object',
      { a: { '@id': x('a'), '@type': '@id' } },
      { a: ['urn:x:1', { id: 'urn:x:1' }] },
      '',
    ],
    ['an id under another name, by an alias of @id', { a: '@id' }, { a: 'urn:x:1', b: 'x' }, '/a'],
    [
      'an IRI in two spellings in a list',
      { a: { '@id': x('a'), '@type': '@vocab' } },
      { a: ['T', x('T')] },
      '',
    ],
    ['a type in two spellings', {}, { type: ['T', x('T')], b: 'x' }, '/type'],
    ['an id in two spellings', { x: x('') }, { id: 'x:1', b: { id: x('1'), b: 'y' } }, '/id'],
    [
      'an IRI with characters that it may not have',
      { a: { '@id': x('a'), '@type': '@id' } },
      { a: 'https://x.example/> <' },
      '/a',
    ],
    [
      'which object has an id, one of which is a JSON value',
      { json },
      { id: 'urn:x:1', json: { id: 'urn:x:1', any: 1 } },
      '/id',
    ],
    ['a proof inside', {}, { proof: { type: 'T' } }, '/proof'],
  ] as [string, Members, Members, string][])
    it(`is ${what}: the problem has the pointer ${pointer}`, async () => {
      const load = loaderWith({ T: x('T'), b: x('b'), ...context });
      const problem = await problemOf(ownCredential(subject), load);
      expect(problem?.split(' ')[0], problem).to.equal(`/credentialSubject${pointer}`);
      if (/alias|map|nest|graph/.test(what)) expect(problem).to.contain(OWN_CONTEXT_URL);
    });

  it('is told once for each place and reason', async () => {
    const index = { '@id': x('c'), '@container': '@index' };
    const options = { documentLoader: loaderWith({ a: x('a'), b: x('b'), c: index }) };
    const types = Array.from({ length: 150 }, (_, count) => `urn:a<${count}`);
    const document = ownCredential({ type: types, a: ['x', 'x'], c: { k: { b: 'x' }, l: { b: 'y' } } });
    const found = await unsignedContentIn(document, { ...options, contextResolver: new PreparedContexts() });
    const pointers = found.map(({ pointer }) => pointer.replace('/credentialSubject', ''));
    expect(pointers).to.have.members(['/type', '/a', '/c']);
  });

  it('is nothing that the contexts in use have', async () => {
    const context = {
      '@protected': true,
      T: { '@id': x('T'), '@type': '@id', '@context': { '@protected': true, inner: x('inner'), none: null } },
      schema: 'https://schema.example/',
      a: 'schema:a',
      json,
      empty: { ...json, '@id': x('empty') },
      nothing: { ...json, '@id': x('nothing') },
      link: { '@id': x('link'), '@type': '@id' },
      vocab: { '@id': x('vocab'), '@type': '@vocab' },
      date: { '@id': x('date'), '@type': 'http://www.w3.org/2001/XMLSchema#dateTime' },
      set: { '@id': x('set'), '@container': '@set', '@context': { '@protected': true, inner: x('i') } },
      number: double,
      other: { '@id': x('other'), '@context': null },
      kind: '@type',
      // As in the first version of TrustVC's context for renderMethod.
      rendered: {
        '@id': x('rendered'),
        '@context': { '@protected': true, id: { '@id': x('id') }, type: { '@id': x('type') } },
      },
    };
    const subject = {
      type: ['T', 'schema:Thing'],
      inner: 'x',
      a: ['x', { id: 'urn:x:3' }],
      json: { any: [1, 2], thing: null, id: 'urn:x:1', more: [{ id: 7 }, { id: 'urn:x:3' }, { id: 7 }] },
      empty: [],
      nothing: null,
      link: { id: 'urn:x:2', a: null },
      vocab: ['T', 'schema:b', 'urn:x:2'],
      date: '2026-01-31T00:00:00Z',
      set: [{ kind: 'schema:Item', inner: 'x' }, {}],
      number: ['5.25', 7],
      name: [{ '@value': 'x', '@language': 'en' }],
      other: {},
      rendered: [
        { id: 'https://x.example', type: 'A' },
        { id: 'https://x.example', type: 'B' },
      ],
    };
    expect(await problemOf(ownCredential(subject), loaderWith(context))).to.equal('');
  });

  const based = { '@base': 'https://x.example/' };
  const link = { '@id': x('a'), '@type': '@id' };
  for (const [where, context] of [
    ['for all', { ...based, a: link }],
    ['for a term', { a: { ...link, '@context': based } }],
    ['for a type', { T: { '@id': x('T'), '@context': based }, a: link }],
  ] as [string, Members][])
    it(`is how an IRI is written relative to a base ${where}`, async () => {
      const load = loaderWith({ T: x('T'), ...context });
      const [written, other] = ['b', 'for Mallory/../b'].map((a) => ownCredential({ type: 'T', a }));
      expect(await statementsOf(written ?? {}, load)).to.equal(await statementsOf(other ?? {}, load));
      expect(await problemOf(other ?? {}, load)).to.match(/^\/@context uses @base .*own-v1/);
    });

  const OTHER = 'https://issuer.example/contexts/other.json';
  const typedElsewhere = { T: { '@id': x('T'), '@context': './other.json' } };
  for (const [what, other, subject, pointer] of [
    ['has such a term', { a: index }, { a: { k: { b: 'y' } } }, '/credentialSubject/a'],
    ['has a base', based, {}, '/@context'],
  ] as [string, Members, Members, string][])
    it(`is told with the context of a type that is a file of its own and ${what}`, async () => {
      const own = loaderWith({ ...typedElsewhere, b: x('b') });
      const load: DocumentLoader = async (asked) => ({
        ...(await own(asked === OTHER ? OWN_CONTEXT_URL : asked)),
        ...(asked === OTHER && { document: { '@context': other }, documentUrl: OTHER }),
      });
      const problem = await problemOf(ownCredential({ type: 'T', b: 'x', ...subject }), load);
      expect(problem).to.match(new RegExp(`^${pointer} uses @?.* \\(context ${OTHER}\\)`));
    });

  const A = { a: { '@id': x('a'), '@type': 'http://www.w3.org/2001/XMLSchema#integer' } };
  const AB = { a: x('a'), b: x('a') };
  const LINK = { a: { '@id': x('a'), '@type': '@id' } };
  for (const [what, context, before, after] of [
    [
      'the order of names and values',
      { a: x('a'), b: x('b') },
      { a: ['x', 'y'], b: '1' },
      { b: '1', a: ['y', 'x'] },
    ],
    ['a value for its list of one', { a: x('a') }, { a: 'x' }, { a: ['x'] }],
    [
      'a member that is null or empty for its absence',
      { a: x('a'), b: x('b') },
      { a: ['x', null], b: [] },
      { a: 'x' },
    ],
    ['a number for its text, if the term has a datatype', A, { a: 5 }, { a: '5' }],
    ['true for its text, if the term has a datatype', A, { a: true }, { a: 'true' }],
    ['two texts of one number of a double', { a: double }, { a: '5' }, { a: '5.0' }],
    ['a term for another one of the same IRI', AB, { a: 'x' }, { b: 'x' }],
    ['a type for its IRI', { T: x('T'), a: x('a') }, { type: 'T', a: 'x' }, { type: x('T'), a: 'x' }],
    ['a compact IRI for the whole one', { ...LINK, x: x('') }, { a: 'x:1' }, { a: x('1') }],
    ['an id alone for an object with the id', LINK, { a: 'urn:x:1' }, { a: { id: 'urn:x:1' } }],
    [
      'a language in capitals',
      { a: x('a') },
      { a: { '@value': 'x', '@language': 'EN' } },
      { a: { '@value': 'x', '@language': 'en' } },
    ],
    [
      'a text for the same in the default language',
      { '@language': 'en', a: x('a') },
      { a: 'x' },
      { a: { '@value': 'x', '@language': 'en' } },
    ],
  ] as [string, Members, Members, Members][])
    it(`may be exchanged for its equal: ${what}`, async () => {
      const load = loaderWith(context);
      for (const subject of [before, after])
        expect(await problemOf(ownCredential(subject), load), JSON.stringify(subject)).to.equal('');
      const statements = await statementsOf(ownCredential(before), load);
      expect(statements)
        .to.be.a('string')
        .and.equal(await statementsOf(ownCredential(after), load));
    });

  it('is no change of a name or a value, for random contexts and documents (500 seeds)', async function () {
    this.timeout(300_000);
    const counts = { refused: 0, accepted: 0, changes: 0 };
    for (let seed = 1; seed <= 500; seed++) {
      const random = seededRandom(seed);
      const context = randomContext(random, 'any');
      const load = loaderWith([FEW_TERMS, context]);
      const document = ownCredential(randomObject(random), []);
      const problem = await problemOf(document, load);
      const before = await statementsOf(document, load);
      if (problem !== '' || before === undefined) {
        counts.refused++;
        continue;
      }
      counts.accepted++;
      for (const changed of changesOf(document, [FEW_TERMS, context], random)) {
        counts.changes++;
        const isReported = (await problemOf(changed, load)) !== '';
        const what = `seed ${seed}: ${JSON.stringify({ context, document, changed })}`;
        if (!isReported) expect(await statementsOf(changed, load), what).not.to.equal(before);
      }
    }
    expect(counts.changes).to.be.greaterThan(500);
  });
});

/** Copies of a document, each with a change that a reader of the JSON sees. */
function* changesOf(document: Members, context: unknown, random: SeededRandom): Generator<Members> {
  const synonyms = synonymsIn(context);
  const places = placesIn(document.credentialSubject, []);
  for (const path of places) {
    for (const change of [rename, rename, edit, remove, addEmpty]) {
      const changed = structuredClone(document);
      const holder = path
        .slice(0, -1)
        .reduce<Members>((value, step) => value[step] as Members, changed.credentialSubject as Members);
      if (change(holder, path.at(-1) ?? '', random, synonyms)) yield changed;
    }
  }
}

function placesIn(value: unknown, path: string[]): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    [...path, name],
    ...placesIn(member, [...path, name]),
  ]);
}

function isEmpty(value: unknown): boolean {
  return [value].flat().every((one) => one === null);
}

/** Pairs of names that have the same IRI, which may be exchanged. */
function synonymsIn(context: unknown): Set<string> {
  const terms = [...membersIn(context, '')].map(({ name, member }) => {
    return { name, iri: (member as Members | null)?.['@id'] ?? member };
  });
  const pairs = terms.flatMap(({ name, iri }) =>
    terms.filter((other) => other.iri === iri).map((other) => `${name} ${other.name}`),
  );
  return new Set(pairs);
}

function rename(holder: Members, name: string, random: SeededRandom, synonyms: Set<string>): boolean {
  const value = holder[name];
  const other = random.pick(['zz', 'a', 'b', 'c', 'k9', '@none', '@index']);
  if (Array.isArray(holder) || isEmpty(value) || other in holder) return false;
  if (synonyms.has(`${name} ${other}`)) return false;
  delete holder[name];
  holder[other] = value;
  return true;
}

function edit(holder: Members, name: string): boolean {
  const value = holder[name];
  if (typeof value === 'string') holder[name] = `${value}x`;
  else if (typeof value === 'number') holder[name] = value + 1;
  else if (typeof value === 'boolean') holder[name] = !value;
  else return false;
  return true;
}

/** Adds a name that no context defines, without a value. With a space, it is none of a `@vocab` either. */
function addEmpty(holder: Members, name: string, random: SeededRandom): boolean {
  const value = holder[name];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  Object.assign(value, { 'released to X': random.pick([null, []]) });
  return true;
}

function remove(holder: Members, name: string): boolean {
  if (isEmpty(holder[name])) return false;
  if (Array.isArray(holder)) holder.splice(Number(name), 1);
  else delete holder[name];
  return true;
}
