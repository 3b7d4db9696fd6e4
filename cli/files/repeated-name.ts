import { visit } from 'jsonc-parser';

/** The second occurrence of a name in an object. Line and column count from 1. */
export interface RepeatedName {
  name: string;
  line: number;
  column: number;
}

/**
 * Finds a member that an object has twice. RFC 8259 (section 4) leaves open which one counts: a person sees
 * both, but a signature covers only the one that the parser takes.
 *
 * @param text JSON that was parsed already. The result is also undefined if it is nested too deeply for the
 *   stack.
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
