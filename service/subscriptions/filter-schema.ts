import { isAddress } from 'ethers';
import * as z from 'zod';
import { isWellFormed, must } from '../base/json';
import type { Filter } from '../events/select-events';
import { tokenIdOrUndefined } from '../registry/token-id-forms';

/** Bounds of filters. They bound the cost of recording an event, even if the filters are hostile. */
export const DEEPEST_FILTER = 5;
/** Filters in all, those inside of others included. */
export const MOST_FILTERS = 200;
/** Entries of one list of tokens or parties. */
export const MOST_ENTRIES = 1_000;
/** Characters of an attribute's name or value, or of an entry. */
export const LONGEST_STRING = 1_024;

const HALF = 'contains half of a surrogate pair. Leave it out.';

const STRING = z
  .string({ error: must('a string', 'Write it in double quotes.') })
  .min(1, 'is empty. Give a value, or leave it out.')
  .max(LONGEST_STRING, `has more than ${LONGEST_STRING} characters. Shorten it.`)
  .refine(isWellFormed, HALF);

const NAME_ATTRIBUTES = 'Give an object with the names of attributes and their values: {"type": "…"}.';

function attributes(description: string) {
  return z
    .record(z.string(), STRING, { error: must('an object', NAME_ATTRIBUTES) })
    .superRefine((values, context) => {
      const refuse = (message: string, ...path: string[]): void =>
        context.addIssue({ code: 'custom', message, path });
      const names = Object.keys(values);
      if (names.length === 0) refuse(`names no attribute. ${NAME_ATTRIBUTES}`);
      for (const name of names)
        if (name === '') refuse('has an empty name. Give the name of an attribute.');
        else if (name.length > LONGEST_STRING)
          refuse(`has a name of more than ${LONGEST_STRING} characters. Shorten it.`);
        else if (!isWellFormed(name)) refuse(HALF, name);
    })
    .optional()
    .meta({
      description,
      minProperties: 1,
      propertyNames: { minLength: 1, maxLength: LONGEST_STRING },
    });
}

function list<Entry extends z.ZodType>(entry: Entry, what: string) {
  return z
    .array(entry, { error: must('an array', 'Put it in [ ].') })
    .min(1, `is empty. Give at least one ${what}, or leave it out.`);
}

/** A list of texts of one form. They are kept as they are written. */
function entries(description: string, isRight: (text: string) => boolean, form: string, pattern: string) {
  const entry = STRING.refine(isRight, `is not ${form}. Correct it.`).meta({ pattern });
  const tooMany = `has more than ${MOST_ENTRIES} entries. Divide them between filters in any.`;
  return list(entry, 'entry').max(MOST_ENTRIES, tooMany).optional().meta({ description });
}

/** `isAddress` of ethers takes an address without 0x, and one of ICAP, too. */
function isAccount(text: string): boolean {
  return text.startsWith('0x') && isAddress(text);
}

/** The dialects of filters. */
export const DIALECTS = {
  exact: attributes('Each named attribute of the event equals the value.'),
  prefix: attributes('Each named attribute begins with the value.'),
  suffix: attributes('Each named attribute ends with the value.'),
  get all() {
    return list(FILTER, 'filter').optional().describe('All of these filters are true.');
  },
  get any() {
    return list(FILTER, 'filter').optional().describe('At least one of these filters is true.');
  },
  get not() {
    return FILTER.optional().describe('This filter is false.');
  },
  tokens: entries(
    'The event is of one of these tokens, in decimal digits or 64 hexadecimal digits.',
    (text) => tokenIdOrUndefined(text) !== undefined,
    'a token id: decimal digits, or 64 hexadecimal digits with or without 0x',
    '^((0[xX])?[0-9a-fA-F]{64}|[0-9]{1,78})$',
  ),
  parties: entries(
    'One of these addresses is in `data.payload`.',
    isAccount,
    'an address: 0x and 40 hexadecimal digits, in lower case or with the right checksum',
    '^0x[0-9a-fA-F]{40}$',
  ),
};

const NAMES = Object.keys(DIALECTS);

/** An object with one member, its dialect: `checkBounds` refuses others. */
export const FILTER = z
  .strictObject(DIALECTS, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `is not a supported filter dialect. Use one of ${NAMES.join(', ')}.`
        : must('an object', `Give a filter: an object with one of ${NAMES.join(', ')}.`)(issue),
  })
  .meta({
    id: 'Filter',
    description:
      `One condition: an object with one member, its dialect. At most ${DEEPEST_FILTER} deep, and ` +
      `${MOST_FILTERS} in all.`,
    minProperties: 1,
    maxProperties: 1,
    examples: [{ suffix: { type: '_transfer' } }],
  }) as unknown as z.ZodType<Filter>;

/** The filters of a subscription. */
export const FILTERS = z.preprocess(
  checkBounds,
  z.array(FILTER, { error: must('an array', 'Put each filter in it.') }),
);

/**
 * Checks the number of filters, their depth, and that each has one member. A hostile body, whose filters are
 * nested as deep as its size allows, is refused before anything else walks through it.
 */
function checkBounds(given: unknown, context: z.RefinementCtx): unknown {
  let filters = 0;
  const refuse = (message: string, path: PropertyKey[]): false => {
    context.addIssue({ code: 'custom', message, path });
    return false;
  };
  function check(filter: unknown, path: PropertyKey[], depth: number): boolean {
    if (depth > DEEPEST_FILTER)
      return refuse(`is nested more than ${DEEPEST_FILTER} deep. Write the filter flatter.`, path);
    if (++filters > MOST_FILTERS)
      return refuse(`has more than ${MOST_FILTERS} filters in all. Leave some out.`, []);
    if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) return true;
    const names = Object.keys(filter);
    const remedy = 'Give each dialect a filter of its own; the filters of a list are combined.';
    if (names.length !== 1 && names.every((name) => NAMES.includes(name)))
      return refuse(`must have exactly one member, but it has ${names.length}. ${remedy}`, path);
    return Object.entries(filter).every(([name, value]: [string, unknown]) => {
      if (name === 'not') return check(value, [...path, name], depth + 1);
      if ((name !== 'all' && name !== 'any') || !Array.isArray(value)) return true;
      return value.every((one, index) => check(one, [...path, name, index], depth + 1));
    });
  }
  if (Array.isArray(given)) given.every((filter, index) => check(filter, [index], 1));
  return given;
}
