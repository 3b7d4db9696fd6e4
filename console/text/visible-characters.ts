import { UNWANTED, escapeOf } from '../../service/base/printable';

/**
 * Splits a stranger's text into characters as they are, and escapes of those that nobody would see, such as
 * control characters and direction marks.
 *
 * @param keepLines line feeds and tabs stay as they are, for texts that are shown in several lines.
 */
export function segmentsOf(text: string, { keepLines = false } = {}) {
  const segments: { text: string; isEscape: boolean }[] = [];
  const add = (part: string, isEscape: boolean): void => {
    if (part === '') return;
    const last = segments.at(-1);
    if (last?.isEscape === isEscape) last.text += part;
    else segments.push({ text: part, isEscape });
  };
  let end = 0;
  for (const { 0: found, index } of text.matchAll(UNWANTED)) {
    if (keepLines && (found === '\n' || found === '\t')) continue;
    add(text.slice(end, index), false);
    for (let unit = 0; unit < found.length; unit++) add(escapeOf(found.charCodeAt(unit)), true);
    end = index + found.length;
  }
  add(text.slice(end), false);
  return segments;
}

/** The text in one string, for attributes, which cannot mark a part. */
export function escapedText(text: string): string {
  return segmentsOf(text)
    .map((segment) => segment.text)
    .join('');
}

/** The first characters of a text; it never ends within a surrogate pair. */
export function beginningOf(text: string, most: number): string {
  const part = text.slice(0, most);
  return /[\uD800-\uDBFF]$/.test(part) ? part.slice(0, -1) : part;
}
