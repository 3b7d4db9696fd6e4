/** The mark of a blank node identifier. */
const BLANK_NODE_PREFIX = '_:';

/**
 * The JSON pointer (RFC 6901) of the first string or key that the signature would not protect, or undefined.
 *
 * `@digitalbazaar/di-sd-primitives` 3.3.0 relabels blank nodes with a regular expression that also rewrites literals, so that
 * text with `_:` in it could be changed after signing and still verify (DESIGN section 3). Walks without recursion: the depth of the input is
 * the caller's choice.
 */
export function findUnprotectedText(root: unknown): string | undefined {
  const pending: { value: unknown; pointer: string }[] = [{ value: root, pointer: '' }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value, pointer } = item;
    if (typeof value === 'string' && value.includes(BLANK_NODE_PREFIX)) return pointer;
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, child] of Object.entries(value)) {
      const childPointer = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (key.includes(BLANK_NODE_PREFIX)) return childPointer;
      pending.push({ value: child, pointer: childPointer });
    }
  }
  return undefined;
}
