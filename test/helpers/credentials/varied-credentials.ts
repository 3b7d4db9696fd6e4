import {
  ATTACHMENTS_CONTEXT_URL,
  CREDENTIALS_V2_CONTEXT_URL,
  DATA_INTEGRITY_V2_CONTEXT_URL,
  RENDER_METHOD_CONTEXT_URL,
  TRANSFERABLE_RECORDS_CONTEXT_URL,
  type JsonObject,
} from '../../../service/issuance/credential';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../../../service/base/published-files';
import { seededRandom, type SeededRandom } from '../seeded-random';

/** The TradeTrust contexts of a credential with TrustVC's Bill of Lading context. */
export const TRADETRUST_CONTEXTS: readonly string[] = [
  TRANSFERABLE_RECORDS_CONTEXT_URL,
  RENDER_METHOD_CONTEXT_URL,
  ATTACHMENTS_CONTEXT_URL,
  TRUSTVC_BILL_OF_LADING_CONTEXT_URL,
];

/** Terms of the Bill of Lading whose values are strings. */
const STRING_TERMS: readonly string[] = (
  'billOfLadingName scac blNumber vessel voyageNo portOfLoading portOfDischarge carrierName ' +
  'placeOfReceipt placeOfDelivery shipperName shipperAddressStreet shipperAddressCountry ' +
  'consigneeName notifyPartyName links'
).split(' ');

const TEXTS = ['', 'Köln', '上海港', 'a"b\\c\n', '12', 'https://carrier.example/x?y#z', '😀', ' '];
const TYPES = ['TransferableRecords', 'EMBEDDED_RENDERER', 'https://other.example/Type'];

/**
 * Credentials in every shape that the vocabulary allows, from a seed: terms are missing, in arrays, nested in
 * place of a string, or under further types. With `undefinedTerms`, each also has a term that may not be
 * defined at its place.
 */
export function variedCredentials(seed: number, count: number, undefinedTerms = false): JsonObject[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const credential = credentialOf(random, index);
    if (undefinedTerms) addTermSomewhere(random, credential);
    return credential;
  });
}

function credentialOf(random: SeededRandom, index: number): JsonObject {
  return {
    '@context': [CREDENTIALS_V2_CONTEXT_URL, DATA_INTEGRITY_V2_CONTEXT_URL, ...TRADETRUST_CONTEXTS],
    id: `urn:uuid:${index}`,
    type: ['VerifiableCredential'],
    issuer: 'did:web:issuer.example',
    credentialStatus: maybeType(random, 'TransferableRecords', {
      tokenId: text(random),
      tokenRegistry: text(random),
      tokenNetwork: some(random, { chain: text(random), chainId: random.pick(['1', '80002', 'x', 7]) }),
    }),
    renderMethod: [
      maybeType(random, 'EMBEDDED_RENDERER', { id: 'https://r.example/', templateName: text(random) }),
    ],
    credentialSubject: subjectOf(random),
  };
}

function subjectOf(random: SeededRandom): JsonObject {
  const nested = (depth: number): JsonObject => {
    const terms = STRING_TERMS.map((term) => [term, valueOf(random, depth)] as const);
    const packages = list(random, () =>
      some(random, {
        packagesDescription: valueOf(random, depth),
        packagesWeight: text(random),
        packagesMeasurement: text(random),
      }),
    );
    const attachments = list(random, () =>
      some(random, { data: text(random), filename: valueOf(random, depth), mimeType: text(random) }),
    );
    return maybeType(random, 'BillOfLading', { ...Object.fromEntries(terms), packages, attachments });
  };
  const valueOf = (from: SeededRandom, depth: number): unknown => {
    if (from.chance(0.8)) return text(from);
    if (from.chance(0.5) || depth === 0) return [text(from), text(from)];
    return nested(depth - 1);
  };
  return nested(1);
}

/** An object with some of the properties, and nearly always with the type that defines them. */
function maybeType(random: SeededRandom, type: string, properties: JsonObject): JsonObject {
  const types = random.chance(0.3) ? [type, random.pick(TYPES)] : [type];
  return { type: types, ...some(random, properties) };
}

function some(random: SeededRandom, properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).filter(() => random.chance(0.5)));
}

/** No, one or several items. The containers of the vocabulary are sets: one item needs no array. */
function list(random: SeededRandom, item: () => JsonObject): JsonObject | JsonObject[] {
  if (random.chance(0.2)) return item();
  return Array.from({ length: random.below(3) }, item);
}

function text(random: SeededRandom): string {
  return random.pick(TEXTS);
}

/** Adds a term to one place of a credential that is defined at another place, or nowhere. */
function addTermSomewhere(random: SeededRandom, credential: JsonObject): void {
  const terms = [
    'nothing',
    'chain',
    'tokenId',
    'templateName',
    'data',
    'filename',
    'packagesWeight',
    'scac',
    'xsd',
  ];
  const term = random.pick([
    ...terms,
    'packages',
    'attachments',
    'BillOfLading',
    'xsd:integer',
    'EMBEDDED_RENDERER',
  ]);
  const places = objectsIn(credential).filter((place) => !(term in place));
  random.pick(places)[term] = text(random);
}

function objectsIn(value: unknown): JsonObject[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.values(value).flatMap(objectsIn);
  return Array.isArray(value) ? inside : [value as JsonObject, ...inside];
}
