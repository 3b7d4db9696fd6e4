import { escaped } from '../../service/base/printable';

/** JSON text with the same characters escaped; JSON itself escapes only the first 32. */
export function printableJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, bigintAsText, indent).split('\n').map(escaped).join('\n');
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
