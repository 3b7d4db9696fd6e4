import { pointerStep } from '../base/json-pointer';
import {
  problemOfKey,
  problemOfList,
  problemOfName,
  problemOfValue,
  type Problem,
} from './unprotected-values';

/** A part of a credential that must not be signed or, in a received one, not be trusted. */
export interface UnprotectedContent extends Problem {
  /** JSON pointer (RFC 6901) from the root that was given. */
  pointer: string;
}

/** Deeper than any document, and far from where the JSON-LD library runs out of stack. */
const DEEPEST = 100;
const TOO_DEEP: Problem = {
  code: 'SUBJECT_VALUE_INVALID',
  problem: `is nested deeper than ${DEEPEST} levels`,
};
const SAME_ID: Problem = {
  code: 'TEXT_NOT_PROTECTED',
  problem:
    'is also the id of another object in the credential: statements about one could be ' +
    'moved to the other; give each its own id, or none',
};

interface Place {
  value: unknown;
  pointer: string;
  depth: number;
  /** The length of the id of the object that has this value. */
  named: number;
}

/**
 * Finds the first content, in document order, that an ecdsa-sd-2023 signature does not protect from changes;
 * undefined if there is none.
 *
 * `root` is a whole credential, to be signed or derived, or its subject alone. Only a whole credential may
 * have `@context` (a list of URLs) and `proof` at its root. Only in a whole credential are the subject's ids
 * compared with those of the issuer and of the credential.
 *
 * Only content that is known to be protected is allowed (docs/signature-coverage.md): objects whose keys are
 * plain terms, with ids of their own; lists of different literals or of objects; well-formed strings;
 * booleans; numbers that JSON-LD writes exactly; and null, which JSON-LD defines as absent. The walk does not
 * use recursion, because the caller chooses the depth of the input.
 */
export function findUnprotectedContent(root: unknown): UnprotectedContent | undefined {
  for (const found of unprotectedContentIn(root)) return found;
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
export function* unprotectedContentIn(root: unknown): Generator<UnprotectedContent, number, undefined> {
  const ids = new Set(isCredential(root) ? [root.issuer, root.id] : []);
  const pending: Place[] = [{ value: root, pointer: '', depth: 0, named: 0 }];
  let statementsLength = 0;
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const { value, pointer, depth } = place;
    const problem = depth > DEEPEST ? TOO_DEEP : problemOfValue(value);
    if (problem) {
      yield { pointer, ...problem };
      continue;
    }
    statementsLength += place.named + ownLength(value);
    const { problems, children } = Array.isArray(value) ? inList(place, value) : inObject(place, ids);
    yield* problems;
    for (const child of children.reverse()) pending.push(child);
  }
  return statementsLength;
}

/** The length of a text in a statement, or of an object's id. */
function ownLength(value: unknown): number {
  if (typeof value === 'object' && value !== null) return idLength(value);
  return typeof value === 'string' ? value.length + 5 * countOf(value, '\u007f') : 0;
}

function idLength(object: object): number {
  return 'id' in object && typeof object.id === 'string' ? object.id.length : 0;
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}

/** The problems of the members themselves, and the places to check next. */
interface Inside {
  problems: UnprotectedContent[];
  children: Place[];
}

function inList({ pointer, depth, named }: Place, list: unknown[]): Inside {
  const found = problemOfList(list);
  return {
    problems: found ? [{ ...found.problem, pointer: `${pointer}/${found.index}` }] : [],
    children: list.map((value, index) => ({
      value,
      pointer: pointer + pointerStep(index),
      depth: depth + 1,
      named,
    })),
  };
}

function inObject({ value, pointer, depth }: Place, ids: Set<unknown>): Inside {
  const inside: Inside = { problems: [], children: [] };
  if (typeof value !== 'object' || value === null) return inside;
  const isRoot = pointer === '' && isCredential(value);
  const named = idLength(value);
  for (const [key, child] of Object.entries(value) as [string, unknown][]) {
    if (isRoot && (key === 'proof' || (key === '@context' && isListOfUrls(child)))) continue;
    const childPointer = pointer + pointerStep(key);
    const isTaken = key === 'id' && !isRoot && ids.has(child);
    const problem = problemOfKey(key) ?? problemOfName(key, child) ?? (isTaken ? SAME_ID : undefined);
    if (key === 'id') ids.add(child);
    if (problem) inside.problems.push({ ...problem, pointer: childPointer });
    else inside.children.push({ value: child, pointer: childPointer, depth: depth + 1, named });
  }
  return inside;
}

function isCredential(root: unknown): root is Record<string, unknown> {
  return typeof root === 'object' && root !== null && '@context' in root && 'credentialSubject' in root;
}

/** An inline context could change the meaning of the credential's terms or remove it. */
function isListOfUrls(contexts: unknown): boolean {
  return [contexts].flat().every((context) => typeof context === 'string');
}
