import { parse, printParseErrorCode, type ParseError } from 'jsonc-parser';

/**
 * Position and description of a JSON syntax error. Line and column count from 1; columns are UTF-16 code
 * units, as in editors.
 */
export interface JsonError {
  line: number;
  column: number;
  problem: string;
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
 * for most errors. Undefined if it is not found, for example because the text is nested deeper than the
 * stack.
 */
export function findJsonError(text: string): JsonError | undefined {
  const error = firstErrorOf(text);
  if (error === undefined) return undefined;
  const before = text.slice(0, error.offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  const name = printParseErrorCode(error.error);
  return {
    line: before.split('\n').length,
    column: error.offset - lineStart + 1,
    problem: PROBLEMS[name] ?? name,
  };
}

function firstErrorOf(text: string): ParseError | undefined {
  const errors: ParseError[] = [];
  try {
    parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
  }
  return errors[0];
}
