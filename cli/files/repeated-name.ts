import { visit } from 'jsonc-parser';

/** A name that stands in its object for the second time; counted from 1. */
export interface RepeatedName {
  name: string;
  line: number;
  column: number;
}

/**
 * Finds a member that an object has twice. JSON leaves open which of them counts (RFC 8259, section 4): a
 * person sees both, and a signature covers the one that the program takes.
 *
 * @param text JSON that was parsed already. Undefined also when it is nested deeper than the stack: such a
 *   text is of no use anyhow.
 */
export function findRepeatedName(text: string): RepeatedName | undefined {
  const open: Set<string>[] = [];
  let found: RepeatedName | undefined;
  try {
    visit(text, {
      onObjectBegin: () => void open.push(new Set()),
      onObjectEnd: () => void open.pop(),
      onObjectProperty: (name, _offset, _length, line, column) => {
        const names = open.at(-1);
        if (names?.has(name)) found ??= { name, line: line + 1, column: column + 1 };
        names?.add(name);
      },
    });
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
  }
  return found;
}
