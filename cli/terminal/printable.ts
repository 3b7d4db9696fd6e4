import { cut, LONGEST_MESSAGE } from '../../service/base/errors';

/**
 * Characters that are not seen, or change how others are seen. Letters have at most four marks in any script;
 * more would cover the lines around them.
 */
export const UNWANTED =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5|(?<=\p{M}{4})\p{M}/gu;

/**
 * Makes a stranger's text safe for one line of a terminal: control characters could act as commands, and
 * direction marks could change how a line reads.
 */
export function printable(text: string): string {
  return cut(escaped(text), LONGEST_MESSAGE);
}

/** JSON text with the same characters escaped; JSON itself escapes only the first 32. */
export function printableJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, bigintAsText, indent).split('\n').map(escaped).join('\n');
}

function escaped(text: string): string {
  return text.replace(UNWANTED, (found) =>
    Array.from({ length: found.length }, (_, index) => escapeOf(found.charCodeAt(index))).join(''),
  );
}

/** A UTF-16 unit as JSON escapes it. */
export function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Token ids are 256 bits. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/**
 * Short forms of addresses for a table: `0x7099…79C8`, or the whole address if two would look the same.
 * Attackers generate addresses whose ends match another one.
 */
export function accountNames(addresses: readonly string[]): Map<string, string> {
  const distinct = [...new Set(addresses)];
  const sharing = (short: string): number => distinct.filter((address) => shortOf(address) === short).length;
  return new Map(
    distinct.map((address) => {
      const short = shortOf(address);
      return [address, sharing(short) === 1 ? short : address];
    }),
  );
}

function shortOf(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`;
}
