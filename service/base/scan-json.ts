import { orUndefined } from './errors';
import { pointerOf } from './json';

/** The content of a JSON text, as far as it can be told without parsing. */
export interface JsonScan {
  /**
   * An upper bound for the number of values. The memory that parsing takes depends on it, not only on the
   * length of the text.
   */
  values: number;
  /** How deep objects and lists are nested. */
  depth: number;
  /** JSON pointer of the second member of an object with the same name. Undefined: there is none. */
  repeated: string | undefined;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const END_OF_LIST = 0x5d;
const OBJECT = 0x7b;
const END_OF_OBJECT = 0x7d;

/** The latest name of an object and those before it, or the index in a list. */
type Open = { latest?: string | undefined; before?: Set<string> } | { index: number };

/**
 * Counts the values of a JSON text, and finds a name that an object has twice. RFC 8259 (section 4) leaves
 * open which of two members counts: a person sees both, but a signature covers only the one that the parser
 * takes. Long texts cost little, because the characters inside strings are skipped.
 *
 * @param json UTF-8. What is said of a text that is not JSON means nothing.
 * @param limits the scan ends when there are more values, or when they are nested more deeply.
 */
export function scanJson(
  json: Uint8Array,
  { mostValues = Infinity, mostDepth = Infinity }: { mostValues?: number; mostDepth?: number } = {},
): JsonScan {
  const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  const open: Open[] = [];
  const scan: JsonScan = { values: 0, depth: 0, repeated: undefined };
  for (let at = 0; at < text.length && scan.values <= mostValues && scan.depth <= mostDepth; at++) {
    const byte = text[at];
    if (byte === QUOTE) {
      const start = at;
      at = endOfString(text, start);
      const within = open.at(-1);
      if (within === undefined || 'index' in within || within.latest !== undefined) continue;
      within.latest = nameIn(text.subarray(start, at + 1));
      if (within.before?.has(within.latest)) scan.repeated ??= pointerTo(open);
    } else if (byte === OBJECT || byte === LIST) {
      scan.values += 1;
      open.push(byte === LIST ? { index: 0 } : {});
      scan.depth = Math.max(scan.depth, open.length);
    } else if (byte === COMMA) {
      scan.values += 1;
      const within = open.at(-1);
      if (within && 'index' in within) within.index += 1;
      else if (within?.latest !== undefined) {
        (within.before ??= new Set()).add(within.latest);
        within.latest = undefined;
      }
    } else if (byte === END_OF_OBJECT || byte === END_OF_LIST) open.pop();
  }
  return scan;
}

function pointerTo(open: readonly Open[]): string {
  return pointerOf(open.map((one) => ('index' in one ? one.index : (one.latest ?? ''))));
}

/** The name that a string in quotes stands for; the text itself if it is no string. */
function nameIn(quoted: Buffer): string {
  if (!quoted.includes(BACKSLASH)) return quoted.toString('utf8', 1, quoted.length - 1);
  return orUndefined(() => JSON.parse(quoted.toString()) as string) ?? quoted.toString();
}

/**
 * Index of the quote that ends the string starting at `start`: the first with an even number of backslashes
 * before it.
 */
function endOfString(text: Buffer, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let before = end - 1;
    while (text[before] === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
