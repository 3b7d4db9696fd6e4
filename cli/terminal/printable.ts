/** Characters of a line; what strangers wrote may have any length. */
const LONGEST = 2_000;

const UNWANTED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Text of strangers as a line for a terminal: control characters would be commands to it, and marks of
 * direction can make a line read as another.
 */
export function printable(text: string, longest = LONGEST): string {
  const line = escaped(text);
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
}

/** JSON text, with the same characters escaped: JSON itself escapes the first 32 only. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value, bigintAsText, 2).split('\n').map(escaped).join('\n');
}

function escaped(text: string): string {
  return text.replace(UNWANTED, (found) =>
    Array.from({ length: found.length }, (_, index) => escapeOf(found.charCodeAt(index))).join(''),
  );
}

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Token ids are 256 bits. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
