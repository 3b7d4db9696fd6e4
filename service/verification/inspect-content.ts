import { RequestError } from '../base/errors';
import { pointerStep } from '../base/json-pointer';

/** A context that a credential names, and where (JSON pointer, RFC 6901). */
export interface NamedContext {
  pointer: string;
  /** Undefined when the terms are defined in place instead of by a URL. */
  url: string | undefined;
}

/** The contexts of a credential, and its members that are ignored. */
export interface Content {
  contexts: NamedContext[];
  /** Pointers of members named `__proto__`, which the JSON-LD library ignores silently. */
  passedOver: string[];
}

/** Deeper than any document, and well below the depth at which the libraries overflow the stack. */
const DEEPEST = 100;

/** More than any credential names; each may have to be fetched. */
const MOST_CONTEXTS = 30;

/**
 * Walks through a credential without recursion, because a stranger chose its depth.
 *
 * @throws RequestError CREDENTIAL_INVALID if it is nested too deeply or names too many contexts.
 */
export function inspectContent(root: unknown): Content {
  const content: Content = { contexts: [], passedOver: [] };
  const pending = [{ value: root, pointer: '', depth: 0 }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value, pointer, depth } = item;
    if (typeof value !== 'object' || value === null) continue;
    if (depth > DEEPEST) throw tooDeep(pointer);
    for (const [key, child] of Object.entries(value) as [string, unknown][]) {
      const at = pointer + pointerStep(key);
      if (key === '@context') content.contexts.push(...namedContexts(child, at));
      else {
        if (key === '__proto__') content.passedOver.push(at);
        pending.push({ value: child, pointer: at, depth: depth + 1 });
      }
    }
  }
  if (content.contexts.length > MOST_CONTEXTS)
    throw new RequestError('CREDENTIAL_INVALID', `It names more than ${MOST_CONTEXTS} contexts.`);
  return content;
}

function namedContexts(value: unknown, pointer: string): NamedContext[] {
  const entryOf = (entry: unknown, at: string): NamedContext => ({
    pointer: at,
    url: typeof entry === 'string' ? entry : undefined,
  });
  if (!Array.isArray(value)) return [entryOf(value, pointer)];
  return value.map((entry, index) => entryOf(entry, `${pointer}/${index}`));
}

function tooDeep(pointer: string): RequestError {
  const place = pointer.slice(0, 60);
  return new RequestError('CREDENTIAL_INVALID', `${place}… is nested deeper than ${DEEPEST} levels.`);
}
