/** Something in a subject that must not be signed: where, and why. */
export interface UnprotectedContent {
  /** JSON pointer (RFC 6901) into the subject. */
  pointer: string;
  code: 'TEXT_NOT_PROTECTED' | 'REQUEST_FIELD_INVALID';
  problem: string;
}

/** Deeper than any document, and far from where the JSON-LD library runs out of stack. */
const DEEPEST = 100;

/** Each a class of content that could be changed after signing and still verify, or that comes back other than it was sent. */
const BLANK_NODE = {
  code: 'TEXT_NOT_PROTECTED',
  problem: 'contains "_:", which the signature would not protect from being changed; write it differently',
} as const;
const LONE_SURROGATE = {
  code: 'TEXT_NOT_PROTECTED',
  problem: 'contains half of a surrogate pair, which the signature would not protect from being changed',
} as const;
const INDEX_KEYWORD = {
  code: 'TEXT_NOT_PROTECTED',
  problem: 'is an annotation that no signature covers (JSON-LD @index); leave it out',
} as const;
const INEXACT_NUMBER = {
  code: 'REQUEST_FIELD_INVALID',
  problem: 'is a number that cannot be kept exactly; write it as a string',
} as const;
const TOO_DEEP = {
  code: 'REQUEST_FIELD_INVALID',
  problem: `is nested deeper than ${DEEPEST} levels`,
} as const;

/**
 * The first content of a subject that the signature would not protect, or undefined.
 *
 * `@digitalbazaar/di-sd-primitives` 3.3.0 relabels blank nodes with a regular expression that also rewrites literals (DESIGN
 * section 3, `_:`); hashing text as UTF-8 makes all lone surrogates the same; `@index` is not part of the RDF that is signed. Walks
 * without recursion: the depth of the input is the caller's choice.
 */
export function findUnprotectedContent(root: unknown): UnprotectedContent | undefined {
  const pending = [{ value: root, pointer: '', depth: 0 }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value, pointer, depth } = item;
    const found = depth > DEEPEST ? TOO_DEEP : inValue(value);
    if (found) return { pointer, ...found };
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, child] of Object.entries(value) as [string, unknown][]) {
      const childPointer = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      const inKey = key === '@index' ? INDEX_KEYWORD : inText(key);
      if (inKey) return { pointer: childPointer, ...inKey };
      pending.push({ value: child, pointer: childPointer, depth: depth + 1 });
    }
  }
  return undefined;
}

function inValue(value: unknown): Omit<UnprotectedContent, 'pointer'> | undefined {
  if (typeof value === 'string') return inText(value);
  if (typeof value !== 'number') return undefined;
  const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isExact ? undefined : INEXACT_NUMBER;
}

function inText(text: string): Omit<UnprotectedContent, 'pointer'> | undefined {
  if (text.includes('_:')) return BLANK_NODE;
  return /\p{Surrogate}/u.test(text) ? LONE_SURROGATE : undefined;
}
