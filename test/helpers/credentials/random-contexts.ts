import { createDocumentLoader, type DocumentLoader } from '../../../service/issuance/document-loader';
import type { SeededRandom } from '../seeded-random';
import type { Members } from './random-subjects';
import { CONTEXT_URL, ISSUER } from './unchecked-issuer';

/** The URL of a context that an issuer publishes. */
export const OWN_CONTEXT_URL = 'https://issuer.example/contexts/own-v1.json';

/** Loads the known contexts, and this one under OWN_CONTEXT_URL. */
export function loaderWith(context: unknown): DocumentLoader {
  const known = createDocumentLoader(CONTEXT_URL);
  const document = { '@context': context };
  const url = OWN_CONTEXT_URL;
  // Without the tag, so that jsonld caches nothing between two contexts.
  return async (asked) => (asked === url ? { contextUrl: null, document, documentUrl: url } : known(asked));
}

/** A credential under this and other contexts, with this subject. */
export function ownCredential(
  credentialSubject: unknown,
  contexts: unknown[] = [
    'https://www.w3.org/ns/credentials/v2',
    'https://w3id.org/security/data-integrity/v2',
  ],
): Members {
  return {
    '@context': [...contexts, OWN_CONTEXT_URL],
    type: ['VerifiableCredential'],
    id: 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001',
    issuer: ISSUER,
    credentialSubject,
  };
}

/** The terms around a subject, for many credentials: jsonld processes them in a twentieth of the time. */
export const FEW_TERMS = {
  id: '@id',
  type: '@type',
  VerifiableCredential: 'https://www.w3.org/2018/credentials#VerifiableCredential',
  issuer: { '@id': 'https://www.w3.org/2018/credentials#issuer', '@type': '@id' },
  credentialSubject: { '@id': 'https://www.w3.org/2018/credentials#credentialSubject', '@type': '@id' },
};

const NAMES = 'a b c d e f g 20ft'.split(' ');
const TYPES = ['T', 'U'];
const XSD = 'http://www.w3.org/2001/XMLSchema#';
const ALIASES =
  '@id @type @value @index @nest @none @set @list @language @reverse @included @graph @direction @json'.split(
    ' ',
  );
const CONTAINERS: unknown[] = [
  ...'@set @set @list @index @language @id @type @graph'.split(' '),
  ...[
    ['@graph', '@index'],
    ['@graph', '@id'],
    ['@set', '@index'],
    ['@set', '@language'],
    ['@graph', '@set'],
  ],
];

/** How often features are drawn that leave content unsigned. */
export type Oddness = 'any' | 'signed';

/**
 * The file of an author who knows all of JSON-LD. `signed`: with features only whose content is signed.
 */
export function randomContext(random: SeededRandom, oddness: Oddness, depth = 2): Members | null {
  const isSigned = oddness === 'signed';
  const iri = (name: string): string =>
    `https://x.example/${depth}#${random.chance(isSigned ? 0 : 0.06) ? random.pick(NAMES) : name}`;
  const scoped = (): unknown => (depth === 0 ? {} : randomContext(random, oddness, depth - 1));
  const definition = (name: string): unknown => {
    const id = { '@id': iri(name) };
    const signed: (() => unknown)[] = [
      () => id['@id'],
      () => id['@id'],
      () => ({ ...id, '@type': random.pick(['@id', '@vocab', '@json', '@none', `${XSD}integer`]) }),
      () => ({ ...id, '@type': `${XSD}double` }),
      () => ({ ...id, '@container': '@set' }),
      () => ({ ...id, '@language': random.pick(['en', null]) }),
      () => ({ ...id, '@context': scoped() }),
      () => ({ ...id, '@container': '@set', '@context': scoped() }),
    ];
    const odd: (() => unknown)[] = [
      () => random.pick(ALIASES),
      () => null,
      () => ({ ...id, '@container': random.pick(CONTAINERS) }),
      () => ({ ...id, '@container': random.pick(CONTAINERS), '@type': random.pick(['@id', '@vocab']) }),
      () => ({ ...id, '@container': '@id', '@type': '@id' }),
      () => ({ ...id, '@container': '@index', '@index': random.pick(NAMES) }),
      () => ({ '@reverse': id['@id'] }),
      () => ({ ...id, '@direction': 'rtl' }),
      () => ({ ...id, '@nest': '@nest' }),
    ];
    return random.pick(!isSigned && random.chance(0.2) ? odd : signed)();
  };
  const terms = NAMES.filter(() => random.chance(0.8)).map((name) => [name, definition(name)]);
  const types = TYPES.map((name) => [name, { '@id': iri(name), ...(depth > 0 && { '@context': scoped() }) }]);
  const few = (value: Members): Members => (random.chance(isSigned ? 0 : 0.06) ? value : {});
  return {
    '@version': 1.1,
    ...few({ '@vocab': 'https://v.example/#' }),
    ...few({ '@language': 'de' }),
    ...few({ '@direction': 'ltr' }),
    ...(depth < 2 && few({ '@propagate': random.chance(0.5) })),
    ...(Object.fromEntries([...terms, ...types]) as Members),
  };
}

const TEXTS = ['5', '5.5', 'T', 'a', 'x', '', 'urn:x:1', 'urn:x:2', 'https://x.example/2#a', 'en'];

function randomValue(random: SeededRandom, depth: number): unknown {
  const usual: (() => unknown)[] = [
    () => random.pick(TEXTS),
    () => random.pick(TEXTS),
    () => random.pick([0, 5, 1.5, true, false]),
    () => null,
    () => Array.from({ length: random.below(4) }, () => random.pick([...TEXTS, null, 7])),
    () => ({ '@value': random.pick(TEXTS), '@language': random.pick(['en', 'de']) }),
  ];
  const deep: (() => unknown)[] = [
    () => randomObject(random, depth - 1),
    () => randomObject(random, depth - 1),
    () => [null, randomObject(random, depth - 1), randomObject(random, depth - 1)].slice(random.below(3)),
    () => ({ k1: random.pick(TEXTS), k2: randomObject(random, depth - 1) }),
    () => ({ ...(random.chance(0.5) && { id: `urn:x:${random.below(1000)}` }) }),
  ];
  return random.pick(depth > 0 && random.chance(0.5) ? deep : usual)();
}

/** An object with names that the context may define. */
export function randomObject(random: SeededRandom, depth = 2): Members {
  const names = NAMES.filter(() => random.chance(0.3));
  return {
    ...(random.chance(0.5) && { type: random.pick(['T', 'U', ['T'], ['U', 'T'], 'https://x.example/#V']) }),
    ...(random.chance(0.15) && { id: `urn:x:${random.below(1000)}` }),
    ...Object.fromEntries(names.map((name) => [name, randomValue(random, depth)])),
  };
}
