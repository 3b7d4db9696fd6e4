import { randomUUID } from 'node:crypto';
import * as jsonld from 'jsonld';
import type ContextResolver from 'jsonld/lib/ContextResolver.js';
import { pointerStep } from '../base/json';
import { isJsonObject, type JsonObject } from './credential';
import { invalid, isExact, notProtected, type Problem, type UnprotectedContent } from './unprotected-content';

/** Where jsonld finds contexts. */
export interface ContextOptions {
  documentLoader: (url: string) => Promise<unknown>;
  contextResolver: ContextResolver;
}

/** A document whose objects can be found again in its statements. */
export interface MarkedDocument {
  /**
   * The document in its own form, except that each object has an id. One that is added is a Skolem IRI of the
   * cryptosuite (https://www.w3.org/TR/vc-di-ecdsa/#skolemizecompactjsonld): the statements stay the same.
   */
  marked: JsonObject;
  /** The document as jsonld expands it, with the same ids. */
  expanded: JsonObject[];
  /** The objects by their ids, with their JSON pointers (RFC 6901). */
  objects: ReadonlyMap<unknown, { pointer: string; object: JsonObject }>;
}

/**
 * Marks the objects of a document, and expands it. It is at most a hundred levels deep.
 *
 * @param odd pointers of objects that are in a value of `@json`, or whose `id` is a term like others, as in
 *   the first version of TrustVC's context for `renderMethod`.
 * @throws JsonLdError for a context that cannot be used, and for what safe mode refuses.
 */
export async function markObjects(
  document: JsonObject,
  options: ContextOptions,
  odd: ReadonlyMap<string, 'in JSON' | 'term'> = new Map(),
): Promise<MarkedDocument> {
  const prefix = `urn:bnid:_${randomUUID()}_`;
  const objects = new Map<unknown, { pointer: string; object: JsonObject }>();
  let count = 0;

  function mark(value: unknown, pointer: string): unknown {
    if (Array.isArray(value)) return value.map((item, index) => mark(item, `${pointer}/${index}`));
    if (!isJsonObject(value) || '@value' in value || odd.get(pointer) === 'in JSON') return value;
    const own = odd.has(pointer) ? undefined : (value.id ?? value['@id']);
    const id = own ?? `${prefix}${count++}`;
    const members = Object.entries(value).map(([name, member]): [string, unknown] => {
      return [name, name === '@context' ? member : mark(member, pointer + pointerStep(name))];
    });
    const object: JsonObject = Object.fromEntries(id === value.id ? members : [...members, ['@id', id]]);
    // An object that has only an id differs by this from a map by id, where names without a value are lost.
    if (!members.some(([name, member]) => !/^(@?id|@context)$/.test(name) && valuesIn(member).length > 0))
      object[prefix] = [];
    objects.set(objects.has(id) ? Symbol('taken') : id, { pointer, object });
    return object;
  }

  const ids = { node: new Set<unknown>(), json: new Set<unknown>() };
  function collectIds(value: unknown, kind: 'node' | 'json'): void {
    if (typeof value !== 'object' || value === null) return;
    const { id, '@id': own, '@type': type } = value as JsonObject;
    if (kind === 'json' || isNode(value)) ids[kind].add(kind === 'json' ? (id ?? own) : own);
    for (const one of Object.values(value)) collectIds(one, type === '@json' ? 'json' : kind);
  }

  const marked = mark(document, '') as JsonObject;
  const expanded = await jsonld.expand(marked, { ...options, safe: true });
  collectIds(expanded, 'node');
  const found = new Map(odd);
  for (const { pointer, object } of objects.values()) {
    const id = object.id ?? object['@id'];
    if (!ids.node.has(id)) found.set(pointer, ids.json.has(id) ? 'in JSON' : 'term');
  }
  const result = { marked, expanded, objects };
  // An id in another spelling cannot stand beside a second one.
  return found.size === odd.size ? result : markObjects(document, options, found).catch(() => result);
}

const XSD_DOUBLE = 'http://www.w3.org/2001/XMLSchema#double';
const NO_DOUBLE = notProtected('has a text that is not exactly the number that its term, a double, signs');
const NO_IRI = invalid('is neither a term nor an absolute IRI, written out and percent-encoded');
/**
 * Characters that are not allowed in an IRI (RFC 3987). Older libraries write them into the signed statements
 * unescaped.
 */
// eslint-disable-next-line no-control-regex
const NOT_IN_IRIS = /[\u0000-\u0020<>"{}|^`\\]/;
const SAME_ID = notProtected(
  'is also the id of another object in the credential: statements about one could be moved to the other',
  'give each its own id, or none',
);
const REPEATED = notProtected(
  'has a value more than once in its list, and a signature does not cover how often a value occurs',
  'write it once, and the quantity as text',
);
const UNSIGNED = notProtected(
  'has a name or a value that is in no signed statement of its own, or two names of one meaning',
);

/** Problems told of one document, of which a stranger may have made any number. */
export const MOST_TOLD = 100;

/**
 * Finds all content that a signature does not protect because of what the contexts make of it. The signed
 * statements have the ids, the types and the values of a document, and its names as IRIs. So each name must
 * have become an IRI of its own, and nothing else may be there: many features of JSON-LD, such as maps by
 * `@index`, lose names or values.
 *
 * @throws JsonLdError for a context that cannot be used, and for what safe mode refuses.
 */
export async function unsignedContentIn(
  document: JsonObject,
  options: ContextOptions,
  marking: Promise<MarkedDocument> = markObjects(document, options),
): Promise<UnprotectedContent[]> {
  try {
    const found = new Map<string, UnprotectedContent>();
    for (const one of differences(await marking)) {
      found.set(`${one.pointer} ${one.problem}`, one);
      if (found.size === MOST_TOLD) break;
    }
    const uses = found.size > 0 ? await losingUses(document, options) : [];
    const reasonOf = (one: UnprotectedContent): UnprotectedContent =>
      uses.find((use) => isWithin(one, use) || isWithin(use, one)) ?? one;
    return [...new Set([...found.values()].map(reasonOf))];
  } catch (thrown) {
    // With some of these features, no object can have the id that is added.
    const [use] = await losingUses(document, options).catch(() => []);
    if (use) return [use];
    throw thrown;
  }
}

function isWithin({ pointer }: UnprotectedContent, { pointer: outer }: UnprotectedContent): boolean {
  return pointer === outer || pointer.startsWith(`${outer}/`);
}

/** The differences between the objects of a document and those that are signed. */
function* differences({ expanded, objects }: MarkedDocument): Generator<UnprotectedContent, void> {
  const unseen = new Map(objects);

  function* inNode(node: JsonObject): Generator<UnprotectedContent, void> {
    const place = unseen.get(node['@id']);
    if (place === undefined) {
      const spelt = [...unseen.values()].find(({ object: { id } }) => typeof id === 'string');
      yield spelt ? { pointer: `${spelt.pointer}/id`, ...NO_IRI } : { pointer: '', ...UNSIGNED };
      return;
    }
    unseen.delete(node['@id']);
    const { pointer, object } = place;
    const found = (problem: Problem, value?: unknown): UnprotectedContent => {
      const name = Object.keys(object).find((one) => [object[one]].flat().includes(value));
      return { pointer: name === undefined ? pointer : pointer + pointerStep(name), ...problem };
    };
    if (filledIn(object) !== filledIn(node)) yield found(UNSIGNED);
    for (const [iri, content] of Object.entries(node)) {
      const values = [content].flat();
      // A map whose keys are types takes the name of the id that is added for a key.
      if (iri === '@type' ? values.includes('@id') : iri.startsWith('@') && iri !== '@id')
        yield found(UNSIGNED);
      // The ids of objects that have more are looked at in these.
      const others = values.filter((value) => !isNode(value));
      const keys = new Set<unknown>();
      const repeated = values.find((value) => keys.size === keys.add(keyOf(value)).size);
      if (repeated !== undefined)
        yield found(REPEATED, isJsonObject(repeated) ? repeated['@value'] : repeated);
      for (const name of [iri, ...others.map(iriIn)])
        if (typeof name === 'string' && NOT_IN_IRIS.test(name)) yield found(NO_IRI, name);
      for (const value of values.filter(isJsonObject)) {
        if (typeof value['@id'] === 'string') {
          const named = objects.get(value['@id']);
          if (isNode(value)) yield* inNode(value);
          else if (named && filledIn(named.object) !== '1')
            yield { pointer: `${named.pointer}/id`, ...SAME_ID };
          continue;
        }
        const { '@value': literal, '@type': type } = value;
        if (!Object.keys(value).every((name) => IN_LITERALS.test(name)) || !('@value' in value))
          yield found(UNSIGNED, literal);
        // The library signs the number at the beginning: the 0 of "0x10".
        const isText = type === XSD_DOUBLE && typeof literal === 'string';
        if (isText && !(isExact(Number(literal)) && parseFloat(literal) === Number(literal)))
          yield found(NO_DOUBLE, literal);
      }
    }
  }

  for (const [id, { pointer }] of objects)
    if (typeof id === 'symbol') yield { pointer: `${pointer}/id`, ...SAME_ID };
  for (const node of expanded) yield* inNode(node);
  for (const { pointer } of unseen.values()) yield { pointer, ...UNSIGNED };
}

/** How many values each of the members has, sorted. Members without a value are left out. */
function filledIn(object: JsonObject = {}): string {
  const counts = Object.entries({ ...object, '@context': null }).map(([, value]) => valuesIn(value).length);
  return counts.filter(Boolean).sort().join();
}

/** Without null, which makes no statement of its own even as a JSON value. */
function valuesIn(value: unknown): unknown[] {
  const isJson = (one: unknown): one is JsonObject => isJsonObject(one) && one['@type'] === '@json';
  return [value].flat(Infinity).flatMap((one) => (isJson(one) ? valuesIn(one['@value']) : (one ?? [])));
}

function isNode(value: unknown): boolean {
  return isJsonObject(value) && '@id' in value && Object.keys(value).length > 1;
}

const IN_LITERALS = /^@(value|type|language)$/;

/** The IRI in an expanded value, or of the datatype of one. */
function iriIn(value: unknown): unknown {
  return isJsonObject(value) ? (value['@id'] ?? value['@type']) : value;
}

/** Equal for two expanded values that make the same statement, or that a reader takes for the same. */
function keyOf(value: unknown): unknown {
  if (!isJsonObject(value) || '@id' in value) return iriIn(value);
  const { '@value': literal, '@type': type, '@language': language } = value;
  return `${String(type)} ${String(language)} ${String(type === XSD_DOUBLE ? Number(literal) : literal)}`;
}

/** Features of a term that change no statement. */
const HARMLESS = /^@(id|type|context|language|protected|prefix)$/;

/** The uses of terms that have a feature of JSON-LD that may lose content; each names the context. */
async function losingUses(document: JsonObject, options: ContextOptions): Promise<UnprotectedContent[]> {
  const features = new Map<string, string>();
  for await (const { url, ...member } of contextMembersOf(document, options)) {
    const { name } = member;
    const feature = losingFeatureOf(member);
    if (feature !== undefined)
      features.set(name === '@base' ? '@context' : name, `${feature} of JSON-LD (context ${url})`);
  }
  return [...membersIn(document, '')].flatMap(({ name, at }) => {
    const feature = features.get(name);
    const statement = `uses ${feature}, which may lose content before it is signed`;
    return feature === undefined ? [] : { pointer: at, ...notProtected(statement, 'use a term without it') };
  });
}

/** The members of all contexts of a document, each with the URL of its context. */
export async function* contextMembersOf(
  document: JsonObject,
  { documentLoader }: ContextOptions,
): AsyncGenerator<Member & { url: string }> {
  const urls = new Set([document['@context']].flat().filter((one) => typeof one === 'string'));
  for (const url of urls) {
    const { document: context } = (await documentLoader(url)) as { document: unknown };
    for (const member of membersIn(context, '')) {
      // A context for one term. The set grows while it is read.
      if (member.name === '@context' && typeof member.member === 'string')
        urls.add(new URL(member.member, url).href);
      yield { ...member, url };
    }
  }
}

/** A member of an object. `at`: its JSON pointer. */
export interface Member {
  name: string;
  member: unknown;
  at: string;
}

/** The members of all objects in a value, with their pointers. */
export function* membersIn(value: unknown, pointer: string): Generator<Member> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    const at = pointer + pointerStep(name);
    yield { name, member, at };
    yield* membersIn(member, at);
  }
}

/** The feature of JSON-LD by which a member of a context may lose content of documents. */
export function losingFeatureOf({ name, member, at }: Member): string | undefined {
  // Refused by PreparedContexts.
  if (name === '@base') return name;
  return name.startsWith('@') || name === 'id' || at.includes('/@container/') ? undefined : featureOf(member);
}

function featureOf(definition: unknown): string | undefined {
  const {
    '@id': id = definition,
    '@container': containers = [],
    ...others
  } = isJsonObject(definition) ? definition : {};
  if (typeof id === 'string' && /^@(?!type$)/.test(id)) return `the keyword ${id}`;
  const container = [containers].flat().find((one) => typeof one === 'string' && one !== '@set');
  if (typeof container === 'string') return `the container ${container}`;
  return Object.keys(others).find((name) => name.startsWith('@') && !HARMLESS.test(name));
}
