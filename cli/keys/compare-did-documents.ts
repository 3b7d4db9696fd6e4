import { pointerStep } from '../../service/base/json-pointer';

/** A difference between two DID documents: a JSON pointer, and a clause that describes it. */
export interface DidDifference {
  pointer: string;
  problem: string;
}

/** Names that key formats use for a secret part; `d` is that of a JWK (RFC 7518, section 6.2.2). */
const SECRET_NAMES = /^(secret|private)Key/i;
/** A P-256 secret key in Multikey encoding. */
const SECRET_VALUE = /z42[1-9A-HJ-NP-Za-km-z]{40,}/;

/**
 * Lists every place where `actual` differs from `expected`. Order counts: docs/specification.md 3.9 and
 * JSON-LD give it a meaning in `@context`. Unexpected values are not repeated because they may be secret.
 */
export function compareDidDocuments(expected: unknown, actual: unknown, pointer = ''): DidDifference[] {
  if (expected === undefined) return [{ pointer, problem: 'should not be there' }];
  if (actual === undefined) return [{ pointer, problem: `is missing; it should be ${shown(expected)}` }];
  if (!isContainer(expected) || !isContainer(actual) || Array.isArray(expected) !== Array.isArray(actual)) {
    return expected === actual
      ? []
      : [{ pointer, problem: `is ${shown(actual)}; it should be ${shown(expected)}` }];
  }
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) =>
    compareDidDocuments(own(expected, name), own(actual, name), pointer + pointerStep(name)),
  );
}

/** Pointers to secret keys in a public document. */
export function findSecretKeys(document: unknown, pointer = ''): string[] {
  if (typeof document === 'string') return document.search(SECRET_VALUE) < 0 ? [] : [pointer];
  if (!isContainer(document)) return [];
  const isJwk = 'kty' in document && 'd' in document;
  return Object.entries(document).flatMap(([name, value]: [string, unknown]) => {
    const at = `${pointer}/${name}`;
    return SECRET_NAMES.test(name) || (isJwk && name === 'd') ? [at] : findSecretKeys(value, at);
  });
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function own(container: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(container, name) ? container[name] : undefined;
}

/** A value for display, without any secret key in it. */
function shown(value: unknown): string {
  if (findSecretKeys(value).length > 0) return 'a value that contains a secret key';
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
