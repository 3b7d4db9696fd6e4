import * as fc from 'fast-check';
import { OPERATIONS, openApi } from '../../../client/description/openapi';
import {
  escapedRun,
  mutated,
  nestedIn,
  TEXT,
  UNITS,
  valuesOf,
  withValue,
  type Schema,
  type ValueOptions,
} from './values';

const api = openApi() as unknown as Api;

/** A request that a seed chose. */
export interface ChosenRequest {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

/** The names that requests may use: nothing outside the test is called. */
export interface Surroundings {
  apiKey: string;
  adminApiKey: string;
  /** A receiver of the test. */
  sink: string;
  registry: string;
  /** A document that the service issued, and the id of its token. */
  credential: object;
  tokenId: string;
}

type Examples = Record<string, { value: object }>;

interface Described {
  parameters: { name: string; in: 'path' | 'query' | 'header'; schema: Schema; example?: string }[];
  requestBody?: {
    content: { 'application/json': { schema: Schema; examples: Examples } };
  };
  security: Record<string, unknown>[];
}

interface Api {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'TRACE'];
/** Characters that a header may have. */
const HEADER_TEXT = fc.stringMatching(/^[\t\x20-\x7e\xa0-\xff]{0,60}$/);
/** A longer path or query is mostly refused for its length. */
const LONGEST_IN_TARGET = 3_000;
export const BYTES = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

const HUGE = '9'.repeat(15);
const NUMBER = fc.oneof(
  fc.constant(1),
  fc.nat(50),
  fc.maxSafeInteger(),
  fc.constantFrom(2 ** 31, HUGE, `${HUGE}9`, '-1', ''),
);
/** Values that look right: places of pages with any numbers, and dates that do not exist. */
const QUERY_TEXT = fc.oneof(
  fc.array(NUMBER, { minLength: 2, maxLength: 3 }).map((numbers) => numbers.join('.')),
  fc.constantFrom(
    '\0',
    'default\0',
    '2026-02-30T00:00:00Z',
    '2027-02-29T23:59:60+01:00',
    '9999-12-31T00:00:00Z',
  ),
  TEXT.map((text) => text.slice(0, LONGEST_IN_TARGET)),
);

/** Requests to every operation of the description: right ones, and wrong ones of every kind. */
export function requestsTo(surroundings: Surroundings): fc.Arbitrary<ChosenRequest> {
  const { sink } = surroundings;
  const options: ValueOptions = {
    resolve: (ref) => api.components.schemas[ref.split('/').at(-1) ?? ''] ?? {},
    uri: fc.constantFrom(
      sink,
      sink,
      'http://10.0.0.1/',
      'ftp://x',
      'https://u:p@x.invalid/',
      'x',
      `${sink}#f`,
    ),
  };
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      hasBody: described.requestBody !== undefined,
      arbitrary: requestOf(path, method.toUpperCase(), described, options, surroundings),
    })),
  );
  // Most of what can go wrong is in bodies.
  return fc.oneof(...operations.map(({ hasBody, arbitrary }) => ({ weight: hasBody ? 5 : 1, arbitrary })));
}

const MEGABYTE = 1_000_000;

/** Requests with a body of megabytes, one text of which is long: to the operations that take documents. */
export function giantsTo(surroundings: Surroundings): fc.Arbitrary<ChosenRequest> {
  const taking = Object.values(OPERATIONS).filter((one) => 'body' in one && one.body.kind === 'document');
  return fc.constantFrom(...taking).chain(({ path, method }) => {
    const content = api.paths[path]?.[method]?.requestBody?.content['application/json'];
    const size = fc.constantFrom(2, 12, 33, 48);
    // The last text is a pointer, where there are some.
    const place = fc.oneof({ weight: 4, arbitrary: fc.nat() }, fc.constant(-1));
    return fc
      .tuple(exampleOf(content?.examples ?? {}, surroundings), place, fc.constantFrom(...UNITS), size)
      .map(([example, at, unit, megabytes]) => ({
        method: method.toUpperCase(),
        target: path.replace('{documentId}', 'BILL_OF_LADING'),
        headers: { Authorization: `Bearer ${surroundings.apiKey}`, 'Content-Type': 'application/json' },
        body: Buffer.from(
          withValue(
            JSON.stringify(example),
            at,
            (room) => `"${escapedRun(unit, megabytes * MEGABYTE - room)}"`,
          ),
        ),
      }));
  });
}

function requestOf(
  path: string,
  method: string,
  { parameters, requestBody, security }: Described,
  options: ValueOptions,
  surroundings: Surroundings,
): fc.Arbitrary<ChosenRequest> {
  const of = (place: string) => parameters.filter((one) => one.in === place);
  const key = security.some((one) => 'adminApiKey' in one) ? surroundings.adminApiKey : surroundings.apiKey;
  const given = Object.fromEntries(
    of('header').map(({ name, schema }) => {
      const right = schema.pattern === undefined ? HEADER_TEXT : textOf(schema, options);
      return [name, fc.oneof(right, HEADER_TEXT, fc.constant('respond-async'))];
    }),
  );
  const headers = fc.record(
    {
      ...given,
      Authorization: mostly(`Bearer ${key}`, HEADER_TEXT),
      'Content-Type': mostly('application/json', fc.oneof(HEADER_TEXT, fc.constant('text/plain'))),
      'Content-Encoding': rarely(fc.constantFrom('gzip', 'br', 'identity', 'x')),
    },
    { requiredKeys: ['Authorization', 'Content-Type'] },
  );
  return fc
    .record({
      method: mostly(method, fc.constantFrom(...METHODS)),
      path: pathOf(path, of('path'), surroundings),
      query: queryOf(of('query'), options),
      headers,
      body: requestBody
        ? bodyOf(requestBody.content['application/json'], options, surroundings)
        : rarely(BYTES),
    })
    .map(({ path: chosen, query, headers: all, ...rest }) => ({
      ...rest,
      target: query === '' ? chosen : `${chosen}?${query}`,
      headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >,
    }));
}

function pathOf(
  path: string,
  parameters: Described['parameters'],
  { tokenId }: Surroundings,
): fc.Arbitrary<string> {
  const parts = parameters.map(({ name, example: described = '' }) => {
    const example = name === 'tokenId' ? tokenId : described;
    const some = fc.oneof(
      fc.constantFrom(example, 'default', '0', '%', '%00', `${example}%00`, '..', '0x', 'f'.repeat(64), HUGE),
      fc.string({ maxLength: 30 }).map(encodeURIComponent),
      TEXT.map((text) => encodeURIComponent(Buffer.from(text.slice(0, LONGEST_IN_TARGET)).toString())),
    );
    return fc.tuple(fc.constant(`{${name}}`), mostly(example, some));
  });
  return fc
    .tuple(...parts)
    .map((chosen) => chosen.reduce((result, [name, value]) => result.replace(name, () => value), path));
}

function queryOf(parameters: Described['parameters'], options: ValueOptions): fc.Arbitrary<string> {
  if (parameters.length === 0) return rarely(fc.webQueryParameters()).map((query) => query ?? '');
  const pairs = parameters.map(({ name, schema }) =>
    fc
      .oneof(textOf(schema, options), fc.string({ unit: 'grapheme', maxLength: 20 }), QUERY_TEXT)
      .map((value): [string, string] => [name, value]),
  );
  const unknown = fc.tuple(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }));
  return fc
    .array(fc.oneof({ weight: 9, arbitrary: fc.oneof(...pairs) }, unknown), { maxLength: 4 })
    .map((chosen) => new URLSearchParams(chosen).toString());
}

function textOf(schema: Schema, options: ValueOptions): fc.Arbitrary<string> {
  return valuesOf(schema, options).map((value) =>
    typeof value === 'string' ? value : JSON.stringify(value),
  );
}

function bodyOf(
  { schema, examples }: { schema: Schema; examples: Examples },
  options: ValueOptions,
  surroundings: Surroundings,
): fc.Arbitrary<Buffer | undefined> {
  const example = exampleOf(examples, surroundings);
  const right = fc.oneof(valuesOf(schema, options), example).map((value) => inside(value, surroundings));
  const wrong = right.chain(mutated).map((value) => inside(value, surroundings));
  const json = fc.oneof({ weight: 3, arbitrary: right }, { weight: 4, arbitrary: wrong });
  const text = json.map((value) => JSON.stringify(value) ?? '');
  const bytes = text.map((one) => Buffer.from(one));
  const cut = fc.tuple(bytes, fc.nat(200)).map(([whole, at]) => whole.subarray(0, at));
  const nested = nestedIn(text).map((one) => Buffer.from(one));
  return fc.oneof(
    { weight: 32, arbitrary: bytes },
    { weight: 4, arbitrary: cut },
    { weight: 4, arbitrary: BYTES },
    { weight: 4, arbitrary: fc.constant(undefined) },
    nested,
  );
}

/** The example of a body; a credential in it is the one that the service issued. */
function exampleOf(examples: Examples, surroundings: Surroundings): fc.Arbitrary<unknown> {
  const { credential } = surroundings;
  return fc
    .constantFrom(...Object.values(examples))
    .map(({ value }) =>
      inside(
        'verifiableCredential' in value ? { ...value, verifiableCredential: credential } : value,
        surroundings,
      ),
    );
}

/** Networks and sinks outside the test are replaced: the service would call them. */
function inside(value: unknown, { sink, registry }: Surroundings): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = { ...(value as Record<string, unknown>) };
  if (typeof members.network === 'string' && /^[a-z]+$/.test(members.network)) members.network = '31337';
  if (typeof members.network === 'number') members.network = 31337;
  if (members.address === registry.toLowerCase()) members.address = registry;
  if (typeof members.sink === 'string' && members.sink.includes('.example')) members.sink = sink;
  return members;
}

function mostly<Value>(usual: Value, other: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
}

function rarely<Value>(some: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return mostly<Value | undefined>(undefined, some);
}
