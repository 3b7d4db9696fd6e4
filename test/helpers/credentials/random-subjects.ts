import type { SeededRandom } from '../seeded-random';

/** A subject, or a part of one, as JSON. */
export type Members = Record<string, unknown>;

const TERMS = [
  ...'billOfLadingName scac blNumber vessel voyageNo portOfLoading carrierName consigneeName'.split(' '),
  ...['links', 'description'],
];

/** Pieces of odd strings: text that has caused errors, or might. */
const PIECES = [
  ...'_ : < > undefined urn:x c14n0 a B 0 12 1e-7 true null @id @index {} [] https://a.example/b#c'.split(
    ' ',
  ),
  ...['"', "'", '\\', '\\u0041', '\\n', '"@en', '"^^<http://www.w3.org/2001/XMLSchema#integer>'],
  ...['_ :', ' ', '  ', '', ' .\n<a:b> <c:d> "e', '\r\n', 'e\u0301', '提单'],
  ...'\r\n\t\b\f\u0000\u001f\u007f\u0085\u2028\ufeff\uffff',
  ...'\ud83d\udea2\u202e\u200f\u2067éﷺΩß',
];

/** Pieces that a signature does not protect. They are rare, so that most subjects can be signed. */
const UNPROTECTED = [
  '_:b0',
  'PO_:123',
  '_:c14n0',
  'PO_:1 kg',
  'urn:bnid:',
  '<urn:bnid:a>',
  '\ud800',
  '\udfff x',
];

/** A string of odd pieces; one in fifty is very long. */
export function oddString(random: SeededRandom): string {
  const pieces = Array.from({ length: random.below(5) }, () => random.pick(PIECES));
  if (random.chance(0.04)) pieces.push(random.pick(UNPROTECTED));
  const text = pieces.join(random.pick(['', '', ' ']));
  return random.chance(0.02) ? `${text}${'x'.repeat(20_000)}${text}` : text;
}

const NUMBERS = [0, 1, -7, 1.5, 0.1, 0.3, -12.25, 1.5e-7, 2 ** 53 - 1, 0.1 + 0.2, 1e-7, 1e21, -0];

function oddValue(random: SeededRandom): unknown {
  if (random.chance(0.6)) return oddString(random);
  const strings = (): string[] => Array.from({ length: random.below(4) }, () => oddString(random));
  const usual: (() => unknown)[] = [
    () => random.pick(NUMBERS),
    () => random.pick(NUMBERS),
    () => random.chance(0.5),
    () => null,
    strings,
    () => [...strings(), random.pick(NUMBERS), null],
    () => ({ name: oddString(random) }),
    () => [{ name: oddString(random) }, { description: oddString(random), id: oddId(random) }],
    () => ({}),
  ];
  const unprotected: (() => unknown)[] = [
    () => [[oddString(random)], strings()],
    () => [[oddString(random)], strings()],
    () => ({ '@value': oddString(random), '@index': oddString(random) }),
    () => ({ '@none': oddString(random) }),
  ];
  return random.pick(random.chance(0.1) ? unprotected : usual)();
}

/** Ids: valid ones, those of other objects in the credential, and values that are no IRIs. */
function oddId(random: SeededRandom): string {
  const ids = [
    'did:web:carrier.example',
    'urn:uuid:a',
    'https://a.example/提单?a=b#c',
    'did:web:issuer.example',
  ];
  const odd = [`urn:x:${oddString(random)}`, 'urn:bnid:a', '_:b0', 'xsd:a', 'https://renderer.example'];
  return random.pick(random.chance(0.8) ? ids : odd);
}

function aPackage(random: SeededRandom): Members {
  const all: Members = {
    packagesDescription: oddString(random),
    packagesWeight: oddString(random),
    packagesMeasurement: oddString(random),
    ...(random.chance(0.05) && { id: oddId(random) }),
  };
  return Object.fromEntries(Object.entries(all).filter(() => random.chance(0.8)));
}

/** Members that a subject should not have. */
function hostileMember(random: SeededRandom): Members {
  const keys = '@base @vocab @none proof __proto__ xsd:a https://example.com/terms#vessel'.split(' ');
  const value = random.pick([oddString(random), { name: oddString(random) }]);
  return JSON.parse(`{"${random.pick(keys)}":${JSON.stringify(value)}}`) as Members;
}

/** An odd subject of a Bill of Lading. Most can be signed, and some must not be. */
export function randomSubject(random: SeededRandom): Members {
  const many = <T>(bound: number, make: () => T): T[] => Array.from({ length: random.below(bound) }, make);
  const terms = many(6, () => [random.pick(TERMS), oddValue(random)] as const);
  const hostile = random.chance(0.15) ? hostileMember(random) : {};
  const subject: Members = {
    type: random.pick([['BillOfLading'], 'BillOfLading', ['BillOfLading', 'https://a.example/Bill']]),
    ...(random.chance(0.3) && { id: oddId(random) }),
    ...Object.fromEntries(terms),
    ...(random.chance(0.6) && { packages: many(4, () => aPackage(random)) }),
    ...(random.chance(0.2) && {
      attachments: [{ data: 'AAAA', filename: oddString(random), mimeType: 'text/plain' }],
    }),
  };
  for (const [key, value] of Object.entries(hostile)) {
    Object.defineProperty(subject, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return subject;
}
