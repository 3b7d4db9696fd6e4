import { printParseErrorCode, visit, type JSONVisitor } from 'jsonc-parser';
import * as z from 'zod';
import { cut, orUndefined, RequestError, type ErrorCode } from './errors';

/** A name or an index as a step of a JSON pointer (RFC 6901, section 3). */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The position of a value in a body: names of members, and indexes. */
export type Path = readonly PropertyKey[];

/** The JSON pointer of a path, for a message. Very long names are cut. */
export function pointerOf(path: Path): string {
  return path.map((step) => pointerStep(cut(String(step)))).join('');
}

/** The kind of a wrong value, for the end of a sentence: it may be missing, or too long to be shown. */
export function found(value: unknown): string {
  return `but it is ${value === undefined ? 'missing' : kindOf(value)}`;
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/**
 * Counts the values in a JSON value, their characters with those of their names, and the levels. It does so
 * without recursion: a stranger chose the depth.
 */
export function sizeOf(root: unknown): { values: number; characters: number; depth: number } {
  const size = { values: 0, characters: 0, depth: 0 };
  const pending = [{ value: root, depth: 0 }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value, depth } = item;
    size.values += 1;
    size.depth = Math.max(size.depth, depth);
    if (typeof value === 'string') size.characters += value.length;
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, child] of Object.entries(value)) {
      if (!Array.isArray(value)) size.characters += name.length;
      pending.push({ value: child, depth: depth + 1 });
    }
  }
  return size;
}

/** The message of a schema: what its value must be, what was found instead of its type, and the remedy. */
export const must =
  (be: string, remedy: string) =>
  ({ code, input }: { code?: string; input?: unknown }): string =>
    `must be ${be}${code === 'invalid_type' || input === undefined ? `, ${found(input)}` : ''}. ${remedy}`;

/**
 * Whether a text has no half of a surrogate pair. JSON can write one, but UTF-8 cannot: it would become
 * U+FFFD.
 */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** An object without other members. `refused`: reasons why members that callers may expect do not exist. */
export function members<Shape extends z.ZodRawShape>(
  name: string,
  shape: Shape,
  refused: Readonly<Record<string, string>> = {},
) {
  const names = Object.keys(shape).join(', ');
  const isNoObject = must('an object', `Its members are ${names}.`);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return isNoObject(issue);
      const reason = Object.entries(refused).find(([member]) => member === issue.keys[0])?.[1];
      return reason ?? `is not a member of ${name}. Leave it out, or write one of ${names}.`;
    },
  });
}

/** All problems of a body. An unknown name has a problem of its own. */
export function problemsOf({ issues }: z.ZodError): { path: Path; problem: string }[] {
  return issues.flatMap(({ path, message, ...issue }) => {
    const names = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
    return names.map((name) => ({ path: name === undefined ? path : [...path, name], problem: message }));
  });
}

/** The first problem of a body. Unknown names come first: a misspelt name explains why another is missing. */
export function firstProblemOf({ issues }: z.ZodError): { path: Path; problem: string } {
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const member = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return { path: [...(issue?.path ?? []), ...member], problem: issue?.message ?? 'is wrong.' };
}

/** A body of the shape of a schema. @throws RequestError of this code, with JSON pointer and remedy. */
export function shaped<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  code: ErrorCode,
): z.output<Schema> {
  const { data, error } = schema.safeParse(body);
  if (error === undefined) return data;
  const { path, problem } = firstProblemOf(error);
  throw new RequestError(code, `${pointerOf(path) || 'The body'} ${problem}`);
}

/** How many of a wanted name's pairs of letters, of which it has its length, are in another name. */
export function sharedPairs(name: string, wanted: string): number {
  const [text, other] = [` ${name.toLowerCase()}`, ` ${wanted.toLowerCase()}`];
  const pairs = Array.from({ length: other.length - 1 }, (_, index) => other.slice(index, index + 2));
  return pairs.filter((pair) => text.includes(pair)).length;
}

export function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}

/**
 * The value of a JSON text in UTF-8, with or without a byte order mark.
 *
 * @param refused makes the error for a text that has none. The problem ends a sentence, and quotes nothing of
 *   the text, which may be a secret.
 */
export function parseJson(bytes: Uint8Array, refused: (problem: string, cause: unknown) => Error): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw refused(problemOf(Buffer.from(bytes)), cause);
  }
}

/** The problem of bytes that are not JSON. */
function problemOf(bytes: Buffer): string {
  // The first two characters of JSON are ASCII.
  if (/^(fffe|feff|00|..00)/.test(bytes.toString('hex', 0, 2))) return 'it is in UTF-16; write it in UTF-8';
  const text = bytes.toString();
  const written = Buffer.from(text);
  const wrong = bytes.findIndex((byte, index) => byte !== written[index]);
  if (wrong !== -1) {
    const before = bytes.toString('utf8', 0, wrong);
    const column = before.length - before.lastIndexOf('\n');
    return `line ${countOf(before, '\n') + 1}, column ${column}: it is not text in UTF-8`;
  }
  if (text.trim() === '') return 'it is empty';
  return findJsonError(text.replace(/^\ufeff/, '')) ?? 'it has too many levels';
}

/** Readable texts for the parser's errors. */
const PROBLEMS: Record<string, string> = {
  CloseBraceExpected: 'a comma or } is expected',
  CloseBracketExpected: 'a comma or ] is expected',
  ColonExpected: 'a colon is expected',
  CommaExpected: 'a comma or a closing bracket is expected',
  EndOfFileExpected: 'nothing more is expected',
  InvalidCharacter: 'a control character in a string must be escaped',
  InvalidCommentToken: 'JSON has no comments',
  InvalidEscapeCharacter: 'this string has an escape sequence that JSON does not have',
  InvalidSymbol: 'this is not a JSON value',
  InvalidUnicode: 'this string has an escape sequence that JSON does not have',
  PropertyNameExpected: 'a name in double quotes is expected',
  UnexpectedEndOfNumber: 'this number is not complete',
  UnexpectedEndOfString: 'this string is not closed on its line',
  ValueExpected: 'a value is expected',
};

/**
 * Finds the first syntax error (RFC 8259) of a text that `JSON.parse` refused: Node.js 20 gives no position
 * for most errors. Line and column count from 1; columns are UTF-16 code units, as in editors. Undefined if
 * none is found, for example because the text is nested deeper than the stack.
 */
export function findJsonError(text: string): string | undefined {
  let found: string | undefined;
  const onError: JSONVisitor['onError'] = (error, _offset, _length, line, character) => {
    const name = printParseErrorCode(error);
    found = `line ${line + 1}, column ${character + 1}: ${PROBLEMS[name] ?? name}`;
    // Ends the search: a text may have millions of errors.
    throw new SyntaxError(name);
  };
  orUndefined(() => void visit(text, { onError }, { disallowComments: true }));
  return found;
}

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
