/** Where a text stops being JSON, both counted from 1 (columns in UTF-16 code units, as editors count), and what is wrong there. */
export interface JsonError {
  line: number;
  column: number;
  problem: string;
}

/** What may stand at the next place. The text says it to a person. */
const VALUE = 'a value is expected';
const VALUE_OR_END = 'a value or ] is expected';
const NAME = 'a name in double quotes is expected';
const NAME_OR_END = 'a name in double quotes or } is expected';
const COLON = 'a colon is expected';
const COMMA_OR_END_OF_OBJECT = 'a comma or } is expected';
const COMMA_OR_END_OF_ARRAY = 'a comma or ] is expected';
const END = 'nothing more is expected';

const WHITE_SPACE = /[ \t\r\n]*/y;
const WORD_OR_NUMBER = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Finds the first place at which a text breaks the grammar of JSON (RFC 8259), for a text that `JSON.parse` refused: Node.js 20 names no
 * place for most errors. Walks without recursion.
 */
export function findJsonError(text: string): JsonError | undefined {
  const open: ('{' | '[')[] = [];
  let expected = VALUE;
  for (let at = endOf(WHITE_SPACE, text, 0); ; at = endOf(WHITE_SPACE, text, at)) {
    const character = text[at];
    if (character === undefined)
      return expected === END ? undefined : placeOf(text, at, `it ends where ${expected}`);
    if (!mayFollow(expected, character)) return placeOf(text, at, expected);
    if (character === '{' || character === '[') {
      open.push(character);
      expected = character === '{' ? NAME_OR_END : VALUE_OR_END;
      at += 1;
    } else if (character === ',' || character === ':') {
      expected = character === ',' && open.at(-1) === '{' ? NAME : VALUE;
      at += 1;
    } else if (character === '}' || character === ']') {
      open.pop();
      expected = afterValue(open);
      at += 1;
    } else {
      const end = character === '"' ? endOfString(text, at) : endOf(WORD_OR_NUMBER, text, at);
      if (typeof end === 'object') return placeOf(text, end.at, end.problem);
      if (end === at) return placeOf(text, at, expected);
      expected = expected === NAME || expected === NAME_OR_END ? COLON : afterValue(open);
      at = end;
    }
  }
}

function afterValue(open: readonly string[]): string {
  if (open.length === 0) return END;
  return open.at(-1) === '{' ? COMMA_OR_END_OF_OBJECT : COMMA_OR_END_OF_ARRAY;
}

function mayFollow(expected: string, character: string): boolean {
  switch (expected) {
    case VALUE:
      return !'}],:'.includes(character);
    case VALUE_OR_END:
      return !'},:'.includes(character);
    case NAME:
      return character === '"';
    case NAME_OR_END:
      return character === '"' || character === '}';
    case COLON:
      return character === ':';
    case COMMA_OR_END_OF_OBJECT:
      return character === ',' || character === '}';
    case COMMA_OR_END_OF_ARRAY:
      return character === ',' || character === ']';
    default:
      return false;
  }
}

/** The place after a string, or what is wrong in it. A loop, for a regular expression runs out of stack on an attachment. */
function endOfString(text: string, start: number): number | { at: number; problem: string } {
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') return at + 1;
    if (character < ' ')
      return { at, problem: 'a line break or control character in a string must be escaped' };
    if (character !== '\\') continue;
    const end = endOf(ESCAPE, text, at);
    if (end === at) return { at, problem: 'this is no escape sequence of JSON' };
    at = end - 1;
  }
  return { at: start, problem: 'this string is not closed' };
}

/** The place after what a sticky pattern matches at `start`; `start` when it matches nothing. */
function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : start;
}

function placeOf(text: string, at: number, problem: string): JsonError {
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: at - lineStart + 1, problem };
}
