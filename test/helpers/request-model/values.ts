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
/** Any text, also control characters, lone surrogates and names that JavaScript gives a meaning. */
const TEXT = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    '_:',
    '\u0000',
    'a\u0000b',
    '\ud800',
    '\udc00x',
    '%2e%2e',
    '…'.repeat(100),
  ),
);

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

/** A value in which one member, at any depth, is missing, added or another value. */
export function mutated(value: unknown): fc.Arbitrary<unknown> {
  const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), TEXT, fc.bigInt().map(Number), HUGE);
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
    return fc.oneof(
      mutated(inner).map(replace),
      junk.map(replace),
      fc.constant(rebuilt(entries.filter((_, index) => index !== at))),
      added,
    );
  });
}
