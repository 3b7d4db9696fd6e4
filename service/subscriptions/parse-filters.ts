import { isAddress } from 'ethers';
import { found, isWellFormed, type Path } from '../base/json';
import type { AttributeValues, Filter } from '../events/select-events';
import { parseTokenId } from '../registry/token-id-forms';
import { DEEPEST_FILTER, LONGEST_STRING, MOST_ENTRIES, MOST_FILTERS } from './bounds';
import { membersOf, subscriptionError } from './subscription-error';

/** The position of a filter: its path, its depth, and the number of filters so far. */
interface Place {
  readonly path: Path;
  readonly depth: number;
  readonly count: { filters: number };
}

const TOKEN_ID = 'a token id: decimal digits, or 64 hexadecimal digits with or without 0x';
const ADDRESS = 'an address: 0x and 40 hexadecimal digits, in lower case or with the right checksum';

const HALF = 'contains half of a surrogate pair. Leave it out.';

/** Checks the value of a dialect. The result is the checked filter. */
const DIALECTS = new Map<string, (value: unknown, place: Place) => Filter>([
  ['exact', (value, place) => ({ exact: attributeValues(value, place) })],
  ['prefix', (value, place) => ({ prefix: attributeValues(value, place) })],
  ['suffix', (value, place) => ({ suffix: attributeValues(value, place) })],
  ['all', (value, place) => ({ all: filtersIn(value, place) })],
  ['any', (value, place) => ({ any: filtersIn(value, place) })],
  ['not', (value, place) => ({ not: filterAt(value, deeper(place)) })],
  ['tokens', (value, place) => ({ tokens: entries(value, place, isTokenId, TOKEN_ID) })],
  ['parties', (value, place) => ({ parties: entries(value, place, isAccount, ADDRESS) })],
]);

const NAMES = [...DIALECTS.keys()].join(', ');

const ATTRIBUTE_VALUES = {
  type: 'object',
  minProperties: 1,
  propertyNames: { minLength: 1, maxLength: LONGEST_STRING },
  additionalProperties: { type: 'string', minLength: 1, maxLength: LONGEST_STRING },
};
const FILTERS = { type: 'array', minItems: 1, items: { type: 'object' } };
const listOf = (pattern: string): object => ({
  type: 'array',
  minItems: 1,
  maxItems: MOST_ENTRIES,
  items: { type: 'string', pattern },
});

/** JSON Schema of a filter. `parseFilters` checks filters, also those within others. */
export const FILTER_SCHEMA = {
  description:
    `One condition: an object with one member, its dialect. At most ${DEEPEST_FILTER} deep, and ` +
    `${MOST_FILTERS} in all.`,
  type: 'object',
  minProperties: 1,
  maxProperties: 1,
  additionalProperties: false,
  properties: {
    exact: { ...ATTRIBUTE_VALUES, description: 'Each named attribute of the event equals the value.' },
    prefix: { ...ATTRIBUTE_VALUES, description: 'Each named attribute begins with the value.' },
    suffix: { ...ATTRIBUTE_VALUES, description: 'Each named attribute ends with the value.' },
    all: { ...FILTERS, description: 'All of these filters are true.' },
    any: { ...FILTERS, description: 'At least one of these filters is true.' },
    not: { type: 'object', description: 'This filter is false.' },
    tokens: {
      ...listOf('^((0[xX])?[0-9a-fA-F]{64}|[0-9]{1,78})$'),
      description: 'The event is of one of these tokens, in decimal digits or 64 hexadecimal digits.',
    },
    parties: {
      ...listOf('^0x[0-9a-fA-F]{40}$'),
      description: 'One of these addresses is in `data.payload`.',
    },
  },
  examples: [{ suffix: { type: '_transfer' } }],
};

/**
 * Checks the filters of a request. At each filter it checks the number and the depth before it goes on, so
 * that a hostile body costs no more than the bounds allow.
 *
 * @throws RequestError SUBSCRIPTION_INVALID
 */
export function parseFilters(filters: readonly unknown[]): Filter[] {
  const count = { filters: 0 };
  return filters.map((filter, index) => filterAt(filter, { path: ['filters', index], depth: 1, count }));
}

function filterAt(value: unknown, place: Place): Filter {
  const { path, depth, count } = place;
  if (depth > DEEPEST_FILTER)
    throw subscriptionError(path, `is nested more than ${DEEPEST_FILTER} deep. Write the filter flatter.`);
  count.filters++;
  if (count.filters > MOST_FILTERS)
    throw subscriptionError(['filters'], `has more than ${MOST_FILTERS} filters in all. Leave some out.`);
  const members = membersOf(value, path, `Give a filter: an object with one of ${NAMES}.`);
  const unknown = members.find(([name]) => !DIALECTS.has(name));
  if (unknown !== undefined)
    throw subscriptionError([...path, unknown[0]], `is not a supported filter dialect. Use one of ${NAMES}.`);
  const [member, ...others] = members;
  if (member === undefined || others.length > 0) {
    const remedy = 'Give each dialect a filter of its own; the filters of a list are combined.';
    throw subscriptionError(path, `must have exactly one member, but it has ${members.length}. ${remedy}`);
  }
  const [dialect, operand] = member;
  return DIALECTS.get(dialect)!(operand, { ...place, path: [...path, dialect] });
}

function deeper({ path, depth, count }: Place): Place {
  return { path, depth: depth + 1, count };
}

function filtersIn(value: unknown, place: Place): Filter[] {
  const list = listAt(value, place.path, 'filter');
  const { depth, count } = deeper(place);
  return list.map((filter, index) => filterAt(filter, { path: [...place.path, index], depth, count }));
}

function attributeValues(value: unknown, { path }: Place): AttributeValues {
  const remedy = 'Give an object with the names of attributes and their values: {"type": "…"}.';
  const values = membersOf(value, path, remedy);
  if (values.length === 0) throw subscriptionError(path, `names no attribute. ${remedy}`);
  const checked = values.map(([name, given]): [string, string] => {
    if (name === '') throw subscriptionError(path, 'has an empty name. Give the name of an attribute.');
    if (name.length > LONGEST_STRING)
      throw subscriptionError(path, `has a name of more than ${LONGEST_STRING} characters. Shorten it.`);
    if (!isWellFormed(name)) throw subscriptionError([...path, name], HALF);
    return [name, textAt(given, [...path, name])];
  });
  return Object.fromEntries(checked);
}

/** A list of texts of one form. They are kept as they are written. */
function entries(
  value: unknown,
  { path }: Place,
  isRight: (text: string) => boolean,
  form: string,
): string[] {
  const list = listAt(value, path, 'entry');
  if (list.length > MOST_ENTRIES)
    throw subscriptionError(
      path,
      `has more than ${MOST_ENTRIES} entries. Divide them between filters in any.`,
    );
  return list.map((entry, index) => {
    const text = textAt(entry, [...path, index]);
    if (!isRight(text)) throw subscriptionError([...path, index], `is not ${form}. Correct it.`);
    return text;
  });
}

function isTokenId(text: string): boolean {
  try {
    return parseTokenId(text) !== undefined;
  } catch {
    return false;
  }
}

/** `isAddress` of ethers takes an address without 0x, and one of ICAP, too. */
function isAccount(text: string): boolean {
  return text.startsWith('0x') && isAddress(text);
}

function listAt(value: unknown, path: Path, entry: string): unknown[] {
  if (!Array.isArray(value))
    throw subscriptionError(path, `must be an array, ${found(value)}. Put it in [ ].`);
  if (value.length === 0)
    throw subscriptionError(path, `is empty. Give at least one ${entry}, or leave it out.`);
  return value;
}

function textAt(value: unknown, path: Path): string {
  if (typeof value !== 'string')
    throw subscriptionError(path, `must be a string, ${found(value)}. Write it in double quotes.`);
  if (value === '') throw subscriptionError(path, 'is empty. Give a value, or leave it out.');
  if (value.length > LONGEST_STRING)
    throw subscriptionError(path, `has more than ${LONGEST_STRING} characters. Shorten it.`);
  if (!isWellFormed(value)) throw subscriptionError(path, HALF);
  return value;
}
