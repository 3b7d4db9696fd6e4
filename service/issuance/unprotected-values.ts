import { isWellFormed } from '../base/strict-members';

/** The reason why the signature does not protect a value, a key or a list, and a remedy. */
export interface Problem {
  code: 'TEXT_NOT_PROTECTED' | 'SUBJECT_VALUE_INVALID';
  /** Continues a sentence that begins with the JSON pointer. */
  problem: string;
}

const notProtected = (problem: string): Problem => ({ code: 'TEXT_NOT_PROTECTED', problem });
const invalid = (problem: string): Problem => ({ code: 'SUBJECT_VALUE_INVALID', problem });

// `di-sd-primitives` 3.3.0 relabels blank nodes by regular expressions over whole statements, text included
// (docs/reports/di-sd-primitives-text-rewriting.md).
const BLANK_NODE = notProtected(
  'contains "_:", which the signature would not protect from being changed; ' +
    'write it differently, for example with a space between',
);
const SKOLEM_NAME = notProtected(
  'contains "urn:bnid:", which signing would change and the signature not protect; write it differently',
);
const LONE_SURROGATE = notProtected(
  'contains half of a surrogate pair, which the signature would not protect from being changed; leave it out',
);
const KEYWORD = notProtected(
  'is a JSON-LD keyword, whose content the signature may not cover; write plain terms and values',
);
const IRI_KEY = notProtected('is not a term; use the terms of the contexts, which have no ":"');
const PROTOTYPE = notProtected('is a name with a special meaning in JavaScript, so it is not signed');
const GRAPH = notProtected(
  'would hold a graph of its own, which cannot be disclosed selectively; leave it out',
);
const NESTED_LIST = notProtected(
  'is a list in a list, whose grouping the signature would not cover; write one list, or objects',
);
const REPETITION = notProtected(
  'occurs more than once in its list, and a signature does not cover how often a value occurs; ' +
    'write it once, and the quantity as text',
);
const INEXACT_NUMBER = invalid('is a number that cannot be kept exactly; write it as a string');
const NO_IRI = invalid('is neither a term nor an absolute IRI, written out and percent-encoded');

const GRAPH_TERMS = new Set(['proof', 'verifiableCredential']);

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
function isExact(value: number): boolean {
  if (Number.isSafeInteger(value)) return !Object.is(value, -0);
  return String(value).includes('.') && Number(value.toExponential(15)) === value;
}

function problemOfText(text: string): Problem | undefined {
  if (text.includes('_:')) return BLANK_NODE;
  if (text.includes('urn:bnid:')) return SKOLEM_NAME;
  return isWellFormed(text) ? undefined : LONE_SURROGATE;
}

/**
 * The problem of a key that is not a term, that is, a plain word that a context defines. Readers of the JSON
 * could not understand it.
 */
export function problemOfKey(key: string): Problem | undefined {
  if (key.startsWith('@')) return KEYWORD;
  if (key === '__proto__') return PROTOTYPE;
  if (GRAPH_TERMS.has(key)) return GRAPH;
  return problemOfText(key) ?? (key.includes(':') ? IRI_KEY : undefined);
}

/**
 * Characters that are not allowed in an IRI (RFC 3987). Older libraries write them into the signed statements
 * unescaped.
 */
// eslint-disable-next-line no-control-regex
const NOT_IN_IRIS = /[\u0000-\u0020<>"{}|^`\\]/;

/**
 * The problem of a value of `id` or `type`. A name with the prefix `xsd:`, which the render-method context
 * defines, would give one IRI two spellings.
 */
export function problemOfName(key: string, value: unknown): Problem | undefined {
  if (key !== 'id' && key !== 'type') return undefined;
  const isWrong = (name: unknown): boolean =>
    typeof name === 'string' && (NOT_IN_IRIS.test(name) || name.startsWith('xsd:'));
  return [value].flat().some(isWrong) ? NO_IRI : undefined;
}

/**
 * The problem of a list. JSON-LD treats it as a set: nested lists are flattened, and equal literals become
 * one. `index` is the item's position in the list.
 */
export function problemOfList(list: unknown[]): { index: number; problem: Problem } | undefined {
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (Array.isArray(item)) return { index, problem: NESTED_LIST };
    if (typeof item !== 'string' && typeof item !== 'number' && typeof item !== 'boolean') continue;
    // Compared as text, because a term with a datatype makes 5 and "5" the same.
    const literal = String(item);
    if (seen.has(literal)) return { index, problem: REPETITION };
    seen.add(literal);
  }
  return undefined;
}
