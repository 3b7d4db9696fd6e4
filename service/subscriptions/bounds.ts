/** Bounds of a subscription. They bound the cost of recording an event, even if the filters are hostile. */

export const LONGEST_SINK = 2_048;
export const MOST_TYPES = 50;

export const MOST_HEADERS = 20;
export const LONGEST_HEADER_NAME = 256;
export const LONGEST_HEADER_VALUE = 4_096;

export const DEEPEST_FILTER = 5;
/** Filters in all, those inside of others included. */
export const MOST_FILTERS = 200;
/** Entries of one list of tokens or parties. */
export const MOST_ENTRIES = 1_000;
/** Characters of an attribute's name or value, or of an entry. */
export const LONGEST_STRING = 1_024;
