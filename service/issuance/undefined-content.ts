import * as jsonld from 'jsonld';
import { cut } from '../base/errors';
import { pointerStep } from '../base/json';
import { isJsonObject, type JsonObject } from './credential';
import { tokensOf } from './select-parts';
import { contextMembersOf, membersIn, MOST_TOLD, type ContextOptions } from './signed-content';
import type { UnprotectedContent } from './unprotected-content';

/**
 * Finds the content that JSON-LD leaves out because no context gives it a meaning, and for which its safe
 * mode refuses a document. The events of that mode name a term without its place, and a term may be defined
 * in one object and not in the next. So each member is expanded with an id that names its place.
 *
 * @throws JsonLdError for a context that cannot be used.
 */
export async function undefinedContentIn(
  document: JsonObject,
  options: ContextOptions,
): Promise<UnprotectedContent[]> {
  const found: UnprotectedContent[] = [];
  const tell = (pointer: string, problem: string): void =>
    void found.push({ pointer, code: 'SUBJECT_TERM_UNDEFINED', statement: problem, problem });
  const scopes = await scopesIn(document, options);
  const scopeOf = (name: string): string =>
    `${JSON.stringify(cut(name))}, which ${scopes.get(name) ?? 'no context of the credential defines'}`;
  const places: (Place | undefined)[] = [];
  const placed = idsIn(await jsonld.expand(withPlaces(document, undefined, places) as JsonObject, options));
  for (const [index, place] of places.entries()) {
    if (found.length >= MOST_TOLD) return found;
    const types = placed.get(`${PLACE}${index}`);
    for (const type of types ?? [])
      if (isRelative(type)) tell(`${pointerOf(place)}/type`, `has the type ${scopeOf(type)}`);
    const term = termOf(place);
    // Nothing inside a term without a meaning has one.
    if (types !== undefined || term === undefined || isLost(term)) continue;
    term.isLost = true;
    tell(pointerOf(term), `is the term ${scopeOf(term.step)}`);
  }
  const ids = idsIn(await jsonld.expand(document, options));
  const members = [...membersIn(document, '')];
  const own = new Set(members.flatMap(({ name, member }) => (name === 'id' ? [member] : [])));
  // A text may equal the id of an object.
  for (const { name, member, at } of members)
    if (isRelative(member) && ids.has(member) && (name === 'id' || !own.has(member)))
      tell(at, 'must be an absolute IRI, such as urn:… or https://…');
  return found;
}

/** The terms that contexts define inside another one only. */
async function scopesIn(document: JsonObject, options: ContextOptions): Promise<Map<string, string>> {
  const scopes = new Map<string, string>();
  for await (const { name, at, url } of contextMembersOf(document, options)) {
    const owner = tokensOf(at.replaceAll(/\/\d+(?=\/)/g, '')).at(-3);
    if (owner !== undefined) scopes.set(name, `${url} defines for "${owner}" only${SCOPE_ENDS}`);
  }
  return scopes;
}

const SCOPE_ENDS =
  '; the terms of a type end at the next object. Write it where they are, or define it in a "@context" of ' +
  'the term that leads here';

const PLACE = 'urn:place:';
const KEPT = ['@context', 'type'];

/** A value in a document. Only those that are told get a pointer: pointers of all would fill the memory. */
interface Place {
  outer: Place | undefined;
  step: string;
  /** Whether it is an item of a list. */
  isItem: boolean;
  /** Whether it was told that the term has no meaning. */
  isLost: boolean;
}

function pointerOf(place: Place | undefined): string {
  return place === undefined ? '' : pointerOf(place.outer) + pointerStep(place.step);
}

/** The place of the term that has a value, or a list with it. Undefined for the document. */
function termOf(place: Place | undefined): Place | undefined {
  return place?.isItem ? termOf(place.outer) : place;
}

function isLost(place: Place | undefined): boolean {
  return place !== undefined && (place.isLost || isLost(place.outer));
}

/** A copy whose members have objects as values, with their places as ids: the indexes in `places`. */
function withPlaces(value: unknown, place: Place | undefined, places: (Place | undefined)[]): unknown {
  const at = (step: string | number, isItem: boolean): Place => {
    return { outer: place, step: String(step), isItem, isLost: false };
  };
  if (Array.isArray(value) && value.length > 0)
    return value.map((one, index) => withPlaces(one, at(index, true), places));
  const id = `${PLACE}${places.push(place) - 1}`;
  const members = isJsonObject(value) && !('@value' in value) ? Object.entries(value) : [];
  const inner = members.flatMap(([name, member]): [string, unknown][] => {
    if (KEPT.includes(name)) return [[name, member]];
    return name === 'id' ? [] : [[name, withPlaces(member, at(name, false), places)]];
  });
  return Object.fromEntries([...inner, ['@id', id]]);
}

/** The ids in an expanded document, with their types. */
function idsIn(expanded: object): Map<unknown, unknown[]> {
  const ids = new Map<unknown, unknown[]>();
  JSON.stringify(expanded, (_name, value: unknown) => {
    if (isJsonObject(value)) ids.set(value['@id'], [value['@type'] ?? []].flat());
    return value;
  });
  return ids;
}

function isRelative(iri: unknown): iri is string {
  return typeof iri === 'string' && !iri.includes(':') && !iri.startsWith('@');
}
