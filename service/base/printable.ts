import { cut, LONGEST_MESSAGE } from './errors';

/**
 * Characters that are not seen, or change how others are seen. Letters have at most four marks in any script;
 * more would cover the lines around them.
 */
export const UNWANTED =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5|(?<=\p{M}{4})\p{M}/gu;

/**
 * Makes a stranger's text safe for one line that a person reads: control characters could act as commands of
 * a terminal, and direction marks could change how the line reads.
 */
export function printable(text: string): string {
  // The cost grows with the text, which may be of any length.
  return cut(escaped(cut(text, LONGEST_MESSAGE)), LONGEST_MESSAGE);
}

/** A text with these characters as JSON escapes them. */
export function escaped(text: string): string {
  return text.replace(UNWANTED, (found) =>
    Array.from({ length: found.length }, (_, index) => escapeOf(found.charCodeAt(index))).join(''),
  );
}

/** A UTF-16 unit as JSON escapes it. */
export function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
