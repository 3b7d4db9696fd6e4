import * as fc from 'fast-check';

/** A JSON Schema of the description, as far as values are made from it. */
export interface Schema {
  $ref?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  type?: string | string[];
  format?: string;
  pattern?: string;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}

/** Makes values that a schema accepts. `uri`: the URLs that may be called. */
export interface ValueOptions {
  resolve(this: void, ref: string): Schema;
  uri: fc.Arbitrary<string>;
  /** How many references lead to the schema. */
  depth?: number;
}

const MOST_ITEMS = 4;
/** A schema may refer to itself: deeper references are left out. */
const DEEPEST = 3;
/** Texts consist of one of these. They hide, change the direction, end a line, or count twice. */
export const UNITS = [
  ...[
    'x',
    '9',
    'é',
    '提',
    '😀',
    '\u0301',
    '\n',
    '"',
    '\\',
    '\u0000',
    '\ud800',
    '[',
    '{"a":',
    'a:',
    '/a',
    '~',
    ',',
  ],
  ...['\u001b[2J', '\u0007', '\u009b31m', '\u202e', '\u2066', '\u2028', '\u200b', '\ufeff', '\u3164'],
];
/** Most are small. A text of a million stands beside the limits of all that is short. */
const LENGTHS = fc.oneof(
  { weight: 80, arbitrary: fc.nat(60) },
  { weight: 14, arbitrary: fc.integer({ min: 200, max: 5_000 }) },
  { weight: 5, arbitrary: fc.integer({ min: 20_000, max: 100_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 300_000, max: 1_000_000 }) },
);
const REPEATED = fc
  .tuple(fc.constantFrom(...UNITS), LENGTHS)
  .map(([unit, length]) => unit.repeat(Math.ceil(length / unit.length)));

/** Any text, of any length and alphabet, also names that JavaScript gives a meaning. */
export const TEXT = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    '_:',
    'a\u0000b',
    '\udc00x',
    '%2e%2e',
    '…'.repeat(100),
    `0x${'aB'.repeat(20)}`,
    `did:web:${'a:'.repeat(300)}`,
  ),
  REPEATED,
);

/** An entry of a list comes so often. */
const REPETITIONS = 100;
const HUGE = fc.constantFrom(2 ** 31, 2 ** 53, 2 ** 63, 1e21, -1e300);

/** Values that the schema accepts. */
export function valuesOf(schema: Schema, options: ValueOptions): fc.Arbitrary<unknown> {
  const { $ref, enum: values, anyOf, oneOf, type } = schema;
  const { depth = 0 } = options;
  if ($ref !== undefined) return valuesOf(options.resolve($ref), { ...options, depth: depth + 1 });
  if ('const' in schema) return fc.constant(schema.const);
  if (values !== undefined) return fc.constantFrom(...values);
  const alternatives = anyOf ?? oneOf;
  if (alternatives) return fc.oneof(...alternatives.map((one) => valuesOf(one, options)));
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => valuesOf({ ...schema, type: one }, options)));
  switch (type) {
    case 'string':
      return textsOf(schema, options);
    case 'integer':
    case 'number':
      return fc.maxSafeInteger().map((number) => within(schema, number));
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}, options), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.max(schema.minItems ?? 0, Math.min(schema.maxItems ?? MOST_ITEMS, MOST_ITEMS)),
      });
    case 'object':
      return objectsOf(schema, options);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function textsOf({ pattern, format, maxLength }: Schema, { uri }: ValueOptions): fc.Arbitrary<string> {
  if (format === 'uri') return uri;
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  return TEXT.map((text) => text.slice(0, maxLength));
}

function within({ minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Schema, n: number) {
  return n >= minimum && n <= maximum ? n : minimum + (Math.abs(n) % (maximum - minimum + 1));
}

function objectsOf(schema: Schema, options: ValueOptions): fc.Arbitrary<object> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const isDeep = (options.depth ?? 0) >= DEEPEST;
  const members = Object.fromEntries(
    Object.entries(properties).flatMap(([name, one]) =>
      isDeep && JSON.stringify(one).includes('"$ref"') ? [] : [[name, valuesOf(one, options)]],
    ),
  );
  const known = fc.record(members, { requiredKeys: required.filter((name) => name in members) });
  if (typeof additionalProperties !== 'object') return known;
  const others = fc.dictionary(
    fc.string({ minLength: 1, maxLength: 20 }),
    valuesOf(additionalProperties, options),
    {
      maxKeys: MOST_ITEMS,
    },
  );
  return fc.tuple(known, others).map(([one, other]) => ({ ...other, ...one }));
}

/** The same many times, and lists in lists. */
const MANY = fc.tuple(fc.constantFrom(10, 200, 5_000), TEXT).chain(([count, text]) => {
  const same = Array<string>(count).fill(text.slice(0, 100));
  const nested = Array.from({ length: Math.min(count, 500) }).reduce<unknown>((inner) => [inner], text);
  return fc.constantFrom<unknown>(same, nested);
});

const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), TEXT, MANY, fc.bigInt().map(Number), HUGE);

/** A value in which one member, at any depth, is missing, added, repeated or another value. */
export function mutated(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return junk;
  const entries = Object.entries(value) as [string, unknown][];
  const rebuilt = (changed: [string, unknown][]): unknown =>
    Array.isArray(value) ? changed.map(([, one]) => one) : Object.fromEntries(changed);
  const added = fc.tuple(TEXT, junk).map((entry) => rebuilt([...entries, entry]));
  if (entries.length === 0) return fc.oneof(added, junk);
  return fc.nat({ max: entries.length - 1 }).chain((at) => {
    const [name, inner] = entries[at] as [string, unknown];
    const replace = (one: unknown) =>
      rebuilt(entries.map((entry, index) => (index === at ? [name, one] : entry)));
    const repeated = Array.isArray(value) ? [fc.constant(Array<unknown>(REPETITIONS).fill(inner))] : [];
    return fc.oneof(
      ...repeated,
      mutated(inner).map(replace),
      junk.map(replace),
      fc.constant(rebuilt(entries.filter((_, index) => index !== at))),
      added,
    );
  });
}

/** JSON in which one of the texts, chosen by `at`, is another value. */
export function withValue(json: string, at: number, valueFor: (room: number) => string): string {
  const texts = [...json.matchAll(/([:[,])"([^"\\]*)"(?=[,\]}])/g)];
  const chosen = texts.at(at % texts.length);
  const [found = '', before = ''] = chosen ?? [];
  const index = chosen?.index ?? 0;
  return `${json.slice(0, index)}${before}${valueFor(json.length)}${json.slice(index + found.length)}`;
}

/** JSON in which one of the texts is lists in lists: too deep to be made from values. */
export function nestedIn(json: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(json, fc.nat(), fc.constantFrom('[', '{"a":'), fc.constantFrom(2_000, 200_000))
    .map(([text, at, opening, depth]) =>
      withValue(text, at, () => `${opening.repeat(depth)}1${(opening === '[' ? ']' : '}').repeat(depth)}`),
    );
}

/** A unit again and again, as JSON escapes it, in at most so many bytes. */
export function escapedRun(unit: string, bytes: number): string {
  const escaped = JSON.stringify(unit).slice(1, -1);
  return escaped.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(escaped))));
}
