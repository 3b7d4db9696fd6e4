import { tokenIdHexOf } from '../registry/token-id-forms';

const PREFIX = 'com.service.etr.';

/** An event's type without its common beginning. */
export function shortType(type: string): string {
  return type.startsWith(PREFIX) ? type.slice(PREFIX.length) : type;
}

/** The stored token id, in decimals or empty, as the page gets it. Null for events of the registry itself. */
export function shownTokenId(stored: string): string | null {
  return stored === '' ? null : tokenIdHexOf(BigInt(stored));
}
