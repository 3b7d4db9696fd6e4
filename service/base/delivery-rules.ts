/** Bounds and defaults of what an operator may set for deliveries. Times are in milliseconds. */

/** A delivery is leased for more than twice this time, even if its process has died. */
export const LONGEST_TIMEOUT_MS = 120_000;
export const DEFAULT_TIMEOUT_MS = 15_000;

/** The longest delay of a timer. */
export const LONGEST_DELAY_MS = 2 ** 31 - 1;

export const MOST_CONCURRENT_DELIVERIES = 1_000;
export const DEFAULT_CONCURRENT_DELIVERIES = 16;

export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** Printable ASCII and tabs. */
export const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** Headers that every delivery sets itself, or that belong to the connection. */
export const OWN_HEADERS: readonly string[] = [
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-service-key-id',
  'x-service-signature',
];
