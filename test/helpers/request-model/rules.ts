import { UNWANTED } from '../../../service/base/printable';
import { listedCodes, readDocument } from '../pages/markdown';

// The rules of all that people read: errors of answers, lines of the log, and the output of commands.

/** No error and no line is longer, whatever was sent. */
const LONGEST = 8_000;
/** A line of the log has a stack, and the messages of the causes. */
const LONGEST_IN_LOG = 32_000;
/** A frame of a stack. */
const FRAME = /^ +at .+(:\d+:\d+\)?|\(native\)|<anonymous>\)?)$/m;

/** The codes of the API, and those of commands. */
export const CODES = listedCodes();
const CODES_OF_COMMANDS = new Set([
  ...CODES,
  ...readDocument('docs/contexts.md').sections.flatMap(
    ({ text }) => text.match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? [],
  ),
]);

/** Something that no text that people read may have; undefined if there is nothing. */
export function problemOfText(text: string, longest = LONGEST): string | undefined {
  for (const line of text.split('\n')) {
    if (line.length > longest) return `a line of ${line.length} characters`;
    const [unwanted] = line.match(UNWANTED) ?? [];
    if (unwanted !== undefined) return `the character U+${unwanted.charCodeAt(0).toString(16)}`;
  }
  return FRAME.test(text) ? 'a stack' : undefined;
}

/** The same for the errors of a command, whose codes are in brackets. */
export function problemOfErrors(text: string): string | undefined {
  const codes = [...text.matchAll(/ \[([A-Z]+(?:_[A-Z]+)*)\]$/gm)].map(([, code = '']) => code);
  const wrong = codes.find((code) => code === 'UNEXPECTED_ERROR' || !CODES_OF_COMMANDS.has(code));
  return wrong === undefined ? problemOfText(text) : `the code ${wrong}`;
}

/** The lines of the log that are too long, or tell of an error without a code of its own. */
export function problemOfLog(output: string): string | undefined {
  const lines = output.split('\n');
  const long = lines.find((line) => line.length > LONGEST_IN_LOG);
  if (long !== undefined) return `a line of ${long.length} characters: ${long.slice(0, 500)}`;
  return lines
    .find((line) => /"code":"INTERNAL"|"level":"fatal"|UNEXPECTED_ERROR/.test(line))
    ?.slice(0, 2_000);
}
