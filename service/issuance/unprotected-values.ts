/** Why a value, a key or a list is not protected by the signature, and what to write instead. */
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
  'contains "_:", which the signature would not protect from being changed; write it differently, for example with a space between',
);
const SKOLEM_NAME = notProtected(
  'contains "urn:bnid:", which signing would change and the signature not protect; write it differently',
);
const LONE_SURROGATE = notProtected(
  'contains half of a surrogate pair, which the signature would not protect from being changed; leave it out',
);
const KEYWORD = notProtected(
  'is a word of JSON-LD itself, whose content the signature may not cover; write plain terms and values',
);
const IRI_KEY = notProtected('is not a term; use the terms of the contexts, which have no ":"');
const PROTOTYPE = notProtected(
  'is a name that JavaScript takes for something else, so that it is not signed',
);
const GRAPH = notProtected(
  'would hold a graph of its own, which cannot be disclosed selectively; leave it out',
);
const NESTED_LIST = notProtected(
  'is a list in a list, whose grouping the signature would not cover; write one list, or objects',
);
const REPETITION = notProtected(
  'stands more than once in its list, and a signature covers what is in a list but not how often; write it once, and the quantity as text',
);
const INEXACT_NUMBER = invalid('is a number that cannot be kept exactly; write it as a string');
const NO_IRI = invalid('is no absolute IRI, written out and percent-encoded, nor a term');

const GRAPH_TERMS = new Set(['proof', 'verifiableCredential']);

/** What JSON-LD writes as a number, it writes with 16 significant digits, or as an integer. */
export function problemOfValue(value: unknown): Problem | undefined {
  if (typeof value === 'string') return problemOfText(value);
  return typeof value === 'number' && !isExact(value) ? INEXACT_NUMBER : undefined;
}

/**
 * jsonld 9 takes a number for a double when its text has a point, and for an integer otherwise: 1e-7 would be
 * signed as 0. Doubles get 16 digits: 0.30000000000000004 would be signed as 0.3.
 */
function isExact(value: number): boolean {
  if (Number.isSafeInteger(value)) return !Object.is(value, -0);
  return String(value).includes('.') && Number(value.toExponential(15)) === value;
}

function problemOfText(text: string): Problem | undefined {
  if (text.includes('_:')) return BLANK_NODE;
  if (text.includes('urn:bnid:')) return SKOLEM_NAME;
  return /\p{Surrogate}/u.test(text) ? LONE_SURROGATE : undefined;
}

/**
 * A key that is not a term (a plain word that a context defines) has no place in a document that JSON readers
 * understand.
 */
export function problemOfKey(key: string): Problem | undefined {
  if (key.startsWith('@')) return KEYWORD;
  if (key === '__proto__') return PROTOTYPE;
  if (GRAPH_TERMS.has(key)) return GRAPH;
  return problemOfText(key) ?? (key.includes(':') ? IRI_KEY : undefined);
}

/**
 * The characters that no IRI has (RFC 3987): older libraries write them into the signed statements as they
 * are.
 */
// eslint-disable-next-line no-control-regex
const NOT_IN_IRIS = /[\u0000-\u0020<>"{}|^`\\]/;

/**
 * The values of `id` and `type`. The render-method context defines the prefix `xsd:`, so that one IRI could
 * have two spellings.
 */
export function problemOfName(key: string, value: unknown): Problem | undefined {
  if (key !== 'id' && key !== 'type') return undefined;
  const isWrong = (name: unknown): boolean =>
    typeof name === 'string' && (NOT_IN_IRIS.test(name) || name.startsWith('xsd:'));
  return [value].flat().some(isWrong) ? NO_IRI : undefined;
}

/**
 * A list is a set to JSON-LD: lists in it dissolve, and equal literals become one. `index` is that of the
 * item in the list.
 */
export function problemOfList(list: unknown[]): { index: number; problem: Problem } | undefined {
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (Array.isArray(item)) return { index, problem: NESTED_LIST };
    if (typeof item !== 'string' && typeof item !== 'number' && typeof item !== 'boolean') continue;
    // As text: a term with a datatype makes 5 and "5" the same.
    const literal = String(item);
    if (seen.has(literal)) return { index, problem: REPETITION };
    seen.add(literal);
  }
  return undefined;
}
