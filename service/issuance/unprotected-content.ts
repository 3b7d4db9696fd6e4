import { countOf, isWellFormed, pointerStep } from '../base/json';
import { hasLongName, LONGEST_NAME, type JsonObject } from './credential';

/** A part of a credential that must not be signed or, in a received one, not be trusted. */
export interface UnprotectedContent extends Problem {
  /** JSON pointer (RFC 6901) from the root that was given. */
  pointer: string;
}

/** Deeper than any document, and far from where the JSON-LD library runs out of stack. */
const DEEPEST = 100;

interface Place {
  value: unknown;
  pointer: string;
  depth: number;
  /** The length of the id of the object that has this value. */
  named: number;
}

/** The kind of a root. A credential may have `@context` (URLs) and `proof`. */
type Kind = 'credential' | 'part';

/**
 * Finds the first content, in document order, that an ecdsa-sd-2023 signature does not protect from changes,
 * because of its spelling; undefined if there is none. signed-content.ts finds what depends on the contexts.
 *
 * Only content that is known to be protected is allowed (docs/signature-coverage.md): objects whose keys are
 * plain terms; texts with a language; lists of literals or of objects; well-formed strings; booleans; numbers
 * that JSON-LD writes exactly; and null, which JSON-LD defines as absent. The walk does not use recursion,
 * because the caller chooses the depth of the input.
 *
 * @param root a whole credential, to be signed or derived, or a part of one.
 */
export function findUnprotectedContent(root: unknown, kind: Kind): UnprotectedContent | undefined {
  for (const found of unprotectedContentIn(root, kind)) return found;
  return undefined;
}

/**
 * Yields all unprotected content, for an author who corrects a document. The inside of a refused part is not
 * checked.
 *
 * Returns the approximate number of characters of the statements (N-Quads) about the content, without the
 * IRIs of the vocabulary. Signing holds the statements several times, and they can be far longer than the
 * JSON: each repeats its subject's id, and DEL, one character in JSON, takes six.
 */
export function* unprotectedContentIn(
  root: unknown,
  kind: Kind,
): Generator<UnprotectedContent, number, undefined> {
  const pending: Place[] = [{ value: root, pointer: '', depth: 0, named: 0 }];
  let statementsLength = 0;
  let comparedLength = 0;
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const { value, pointer, depth } = place;
    const length = comparedIn(value);
    comparedLength += length;
    const isLong = length > 0 && comparedLength > MOST_COMPARED;
    const problem = depth > DEEPEST ? TOO_DEEP : isLong ? LONG_LISTS : problemOfValue(value);
    if (problem) {
      yield { pointer, ...problem };
      continue;
    }
    statementsLength += place.named + ownLength(value);
    if (typeof value !== 'object' || value === null) continue;
    const children: Place[] = [];
    const isList = Array.isArray(value);
    const named = isList ? place.named : idLength(value);
    const isTagged = !isList && isTaggedText(value as JsonObject);
    const isRoot = pointer === '' && kind === 'credential';
    for (const [name, child] of Object.entries(value) as [string, unknown][]) {
      if (isRoot && (name === 'proof' || (name === '@context' && isListOfUrls(child)))) continue;
      const at = pointer + pointerStep(name);
      const isLongName = (name === 'id' || name === 'type') && hasLongName(child);
      const wrongName = isLongName ? LONG_NAME : isList || isTagged ? undefined : problemOfKey(name);
      const wrong = isList && Array.isArray(child) ? NESTED_LIST : wrongName;
      if (wrong) yield { pointer: at, ...wrong };
      else children.push({ value: child, pointer: at, depth: depth + 1, named });
    }
    for (const child of children.reverse()) pending.push(child);
  }
  return statementsLength;
}

/** The characters that are compared with those of the others in a list of texts. */
function comparedIn(value: unknown): number {
  const texts = Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
  return texts.length * texts.reduce((sum, { length }) => sum + length, 0);
}

/** The length of a text in a statement, or of an object's id. */
function ownLength(value: unknown): number {
  if (typeof value === 'object' && value !== null) return idLength(value);
  return typeof value === 'string' ? value.length + 5 * countOf(value, '\u007f') : 0;
}

function idLength(object: object): number {
  return 'id' in object && typeof object.id === 'string' ? object.id.length : 0;
}

/** A text with its language (https://www.w3.org/TR/vc-data-model-2.0/#language-and-base-direction). */
function isTaggedText({ '@value': value, '@language': language, ...others }: JsonObject): boolean {
  return typeof value === 'string' && typeof language === 'string' && Object.keys(others).length === 0;
}

/** An inline context could change the meaning of the credential's terms or remove it. */
function isListOfUrls(contexts: unknown): boolean {
  return [contexts].flat().every((context) => typeof context === 'string');
}

/** The reason why the signature does not protect a value, a key or a list. */
export interface Problem {
  code: 'TEXT_NOT_PROTECTED' | 'SUBJECT_VALUE_INVALID' | 'SUBJECT_TERM_UNDEFINED' | 'BODY_TOO_COMPLEX';
  /** For a verifier. Continues a sentence that begins with the JSON pointer. */
  statement: string;
  /** For the author: the statement, and the remedy. */
  problem: string;
}

const problemWith =
  (code: Problem['code']) =>
  (statement: string, remedy?: string): Problem => ({
    code,
    statement,
    problem: remedy === undefined ? statement : `${statement}; ${remedy}`,
  });
export const notProtected = problemWith('TEXT_NOT_PROTECTED');
export const invalid = problemWith('SUBJECT_VALUE_INVALID');
const tooComplex = problemWith('BODY_TOO_COMPLEX');

// `di-sd-primitives` 3.3.0 relabels blank nodes by regular expressions over whole statements, text included
// (docs/reports/di-sd-primitives-text-rewriting.md).
const BLANK_NODE = notProtected(
  'contains "_:", which the signature would not protect from being changed',
  'write it differently, for example with a space between',
);
const SKOLEM_NAME = notProtected(
  'contains "urn:bnid:", which signing would change and the signature not protect',
  'write it differently',
);
const LONE_SURROGATE = notProtected(
  'contains half of a surrogate pair, which the signature would not protect from being changed',
  'leave it out',
);
const KEYWORD = notProtected(
  'is a JSON-LD keyword, whose content the signature may not cover',
  'write plain terms and values',
);
const IRI_KEY = notProtected('is not a term', 'use the terms of the contexts, which have no ":"');
const PROTOTYPE = notProtected('is a name with a special meaning in JavaScript, so it is not signed');
const NESTED_LIST = notProtected(
  'is a list in a list, whose grouping the signature would not cover',
  'write one list, or objects',
);
const LONG_NAME = invalid(`is a name of more than ${LONGEST_NAME} characters`, 'shorten it');
/** Libraries compare each text of a list with every other: 19,000 of 2.7 KB in ten lists took minutes. */
const MOST_COMPARED = 10_000_000_000;
const LONG_LISTS = tooComplex(
  'is a list of texts, and the lists have too many and too long ones',
  'join them, or write shorter ones',
);
/** The regular expression of rdf-canonize 5 takes all memory, or fails, for a few million in one text. */
const MOST_ESCAPED = 2_000_000;
const MANY_ESCAPED = tooComplex(
  `has more than ${MOST_ESCAPED} line ends, quotation marks and the like`,
  'attach it in base64',
);
const TOO_DEEP = invalid(`is nested deeper than ${DEEPEST} levels`);
const INEXACT_NUMBER = invalid('is a number that cannot be kept exactly', 'write it as a string');

/** JSON-LD writes a number as an integer or with 16 significant digits. */
export function problemOfValue(value: unknown): Problem | undefined {
  if (typeof value === 'string') return problemOfText(value);
  return typeof value === 'number' && !isExact(value) ? INEXACT_NUMBER : undefined;
}

/**
 * Whether jsonld 9 signs the number exactly. It treats a number as a double when its text has a point, and
 * otherwise as an integer: 1e-7 would be signed as 0. Doubles get 16 digits: 0.30000000000000004 would be
 * signed as 0.3.
 */
export function isExact(value: number): boolean {
  if (Number.isSafeInteger(value)) return !Object.is(value, -0);
  return String(value).includes('.') && Number(value.toExponential(15)) === value;
}

function problemOfText(text: string): Problem | undefined {
  if (text.includes('_:')) return BLANK_NODE;
  if (text.includes('urn:bnid:')) return SKOLEM_NAME;
  if (!isWellFormed(text)) return LONE_SURROGATE;
  return text.length > MOST_ESCAPED && hasManyEscaped(text) ? MANY_ESCAPED : undefined;
}

/** The characters that canonical N-Quads escapes (ECHAR and UCHAR). */
const ESCAPED = ['"', '\\', '\u007f', ...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code))];

/** Searching a long text for each character takes half the time of a regular expression. */
function hasManyEscaped(text: string): boolean {
  return ESCAPED.reduce((count, character) => count + countOf(text, character), 0) > MOST_ESCAPED;
}

/**
 * The problem of a key that is not a term, that is, a plain word that a context defines. Readers of the JSON
 * could not understand it.
 */
export function problemOfKey(key: string): Problem | undefined {
  if (hasLongName(key)) return LONG_NAME;
  if (key.startsWith('@')) return KEYWORD;
  if (key === '__proto__') return PROTOTYPE;
  return problemOfText(key) ?? (key.includes(':') ? IRI_KEY : undefined);
}
