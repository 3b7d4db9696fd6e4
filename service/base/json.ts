import { printParseErrorCode, visit, type JSONVisitor } from 'jsonc-parser';
import * as z from 'zod';
import { cut, orUndefined, RequestError } from './errors';

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
  code: string,
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
