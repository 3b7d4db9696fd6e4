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
    'is also the id of another object in the credential: statements about one could be moved to the other; give each its own id, or none',
};

interface Place {
  value: unknown;
  pointer: string;
  depth: number;
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
 */
export function* unprotectedContentIn(root: unknown): Generator<UnprotectedContent, void, undefined> {
  const ids = new Set(isCredential(root) ? [root.issuer, root.id] : []);
  const pending: Place[] = [{ value: root, pointer: '', depth: 0 }];
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const { value, pointer, depth } = place;
    const problem = depth > DEEPEST ? TOO_DEEP : problemOfValue(value);
    if (problem) {
      yield { pointer, ...problem };
      continue;
    }
    const { problems, children } = Array.isArray(value) ? inList(place, value) : inObject(place, ids);
    yield* problems;
    for (const child of children.reverse()) pending.push(child);
  }
}

/** The problems of the members themselves, and the places to check next. */
interface Inside {
  problems: UnprotectedContent[];
  children: Place[];
}

function inList({ pointer, depth }: Place, list: unknown[]): Inside {
  const found = problemOfList(list);
  return {
    problems: found ? [{ ...found.problem, pointer: `${pointer}/${found.index}` }] : [],
    children: list.map((value, index) => ({ value, pointer: `${pointer}/${index}`, depth: depth + 1 })),
  };
}

function inObject({ value, pointer, depth }: Place, ids: Set<unknown>): Inside {
  const inside: Inside = { problems: [], children: [] };
  if (typeof value !== 'object' || value === null) return inside;
  const isRoot = pointer === '' && isCredential(value);
  for (const [key, child] of Object.entries(value) as [string, unknown][]) {
    if (isRoot && (key === 'proof' || (key === '@context' && isListOfUrls(child)))) continue;
    const childPointer = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const isTaken = key === 'id' && !isRoot && ids.has(child);
    const problem = problemOfKey(key) ?? problemOfName(key, child) ?? (isTaken ? SAME_ID : undefined);
    if (key === 'id') ids.add(child);
    if (problem) inside.problems.push({ ...problem, pointer: childPointer });
    else inside.children.push({ value: child, pointer: childPointer, depth: depth + 1 });
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
