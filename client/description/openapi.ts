import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { TEXT } from '../../service/answers/views';
import { ERROR_CODES, type ErrorCode } from '../../service/base/errors';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { DELIVERIES } from '../../service/http/description/deliveries';
import { DISCOVERY } from '../../service/http/description/discovery';
import { DOCUMENTS } from '../../service/http/description/documents';
import { KEYS } from '../../service/http/description/keys';
import {
  OF_DATABASE,
  onlyLooks,
  type Answer,
  type Json,
  type Operation,
} from '../../service/http/description/operation';
import { REGISTRIES } from '../../service/http/description/registries';
import { SUBSCRIPTIONS } from '../../service/http/description/subscriptions';
import { CREDENTIALS, TOKENS } from '../../service/http/description/tokens';
import { EVENT_SCHEMAS } from '../events';
import { WEBHOOK_HEADERS, WEBHOOKS } from './webhooks';

/** Every operation of the HTTP API, in the order of the description. */
export const OPERATIONS: readonly Operation[] = [
  DOCUMENTS,
  TOKENS,
  CREDENTIALS,
  SUBSCRIPTIONS,
  DELIVERIES,
  REGISTRIES,
  KEYS,
  DISCOVERY,
].flatMap((operations) => Object.values<Operation>(operations));

/** The texts of api.md by their headings: the introduction, the chapters, and operations by their id. */
export const TEXTS: Readonly<Record<string, string>> = Object.fromEntries(
  readFileSync(join(PROJECT_ROOT, 'client/description/api.md'), 'utf8')
    .split(/^#+ /m)
    .map((section) => {
      const [heading = '', ...lines] = section.split('\n');
      return [heading, lines.join('\n').trim()];
    }),
);

/** Version of the API. It changes with its operations. */
const VERSION = '1.0.0';

const ERROR = z
  .strictObject({
    error: z.strictObject({
      message: TEXT,
      stack: TEXT.optional().describe('Only if NODE_ENV is `development`.'),
    }),
  })
  .meta({ id: 'Error' });
const CURSOR_EXPIRED = ERROR.extend({ cursor: TEXT.describe('The first cursor that goes on.') }).meta({
  id: 'CursorExpired',
});

const REASONS: Readonly<Record<number, string>> = {
  400: 'The request is wrong; the message names the member, parameter or header.',
  401: 'The key is missing or wrong.',
  403: 'The key may not do this.',
  404: 'There is no such thing.',
  408: 'The request arrives too slowly.',
  409: 'The state of the service does not allow the request; the message says what does.',
  410: 'It does not exist any more, or never will. The code tells why.',
  413: 'The body is too large.',
  415: 'The content type or encoding is not supported.',
  422: 'The Idempotency-Key belongs to a request with another body.',
  429: 'Too often: the code tells what.',
  431: 'The headers are too large.',
  500:
    'The service failed; the message is always "Internal server error". In parentheses: who has to act. ' +
    '`nobody`: send the request again later; if it still fails then, tell the operator.',
  503: 'Too much at once, or a node does not answer.',
};

type Errors = Readonly<Record<number, readonly ErrorCode[]>>;

/** Errors that any request may get: most of them from Node.js, before the service sees the request. */
const OF_EVERY_REQUEST: Errors = {
  400: ['PATH_MALFORMED', 'REQUEST_MALFORMED'],
  408: ['REQUEST_TIMEOUT'],
  431: ['HEADERS_TOO_LARGE'],
  500: ['INTERNAL'],
};

const OF_ACCESS: Readonly<Record<Operation['access'], Errors>> = {
  anyone: {},
  'issuer if set': { 401: ['API_KEY_WRONG'] },
  issuer: { 401: ['API_KEY_WRONG'], 404: ['NOT_FOUND'], 500: OF_DATABASE },
  admin: { 401: ['ADMIN_API_KEY_WRONG'], 404: ['NOT_FOUND'], 500: OF_DATABASE },
  'any key': { 401: ['API_KEY_WRONG'], 404: ['NOT_FOUND'] },
};

const OF_KEYS: Errors = { 403: ['KEY_MAY_NOT'], 429: ['KEY_ATTEMPTS'] };

const OF_BODY: Errors = {
  400: ['BODY_NOT_JSON', 'BODY_ABORTED', 'BODY_AMBIGUOUS', 'BODY_TOO_COMPLEX'],
  408: ['BODY_TOO_SLOW'],
  413: ['BODY_TOO_LARGE'],
  415: ['CONTENT_TYPE_WRONG', 'CONTENT_ENCODING_UNSUPPORTED'],
};

/** Operations that only read are answered even then. */
const OF_STORING: Errors = { 503: ['DATABASE_REMOVED'] };

/** Every error of an operation: its codes, by status. */
export function errorsOf(operation: Operation): Map<number, ErrorCode[]> {
  const { access, query, body, errors = {} } = operation;
  const all = new Map<number, ErrorCode[]>();
  const sources = [
    OF_EVERY_REQUEST,
    OF_ACCESS[access],
    access === 'anyone' ? {} : OF_KEYS,
    onlyLooks(operation) || access === 'anyone' ? {} : { 403: ['KEY_READ_ONLY'] as const },
    query ? { 400: ['QUERY_INVALID'] as const } : {},
    body ? OF_BODY : {},
    onlyLooks(operation) ? {} : OF_STORING,
    errors,
  ];
  for (const source of sources)
    for (const [status, codes] of Object.entries(source))
      all.set(Number(status), [...(all.get(Number(status)) ?? []), ...codes]);
  return all;
}

const MOST_CODES_IN_NAME = 3;

const REQUEST_ID = { $ref: '#/components/headers/X-Request-Id' };

/** The OpenAPI 3.1 document of the HTTP API and its webhooks. It is the same for every installation. */
export function openApi(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of OPERATIONS)
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  const tags = new Set([...OPERATIONS.map(({ tag }) => tag), 'Webhooks']);
  return {
    openapi: '3.1.1',
    info: {
      title: 'Transferable Document Creator Service',
      version: VERSION,
      description: TEXTS.Introduction,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This service.' }],
    tags: [...tags].map((name) => ({ name, description: TEXTS[name] })),
    paths,
    webhooks: WEBHOOKS,
    components: {
      schemas: { ...componentSchemas(), ...EVENT_SCHEMAS },
      responses: errorComponents(),
      parameters: WEBHOOK_HEADERS,
      headers: {
        'X-Request-Id': {
          description: "The request's id: the caller's, if it sent a usable one. The log has it too.",
          schema: { type: 'string' },
          example: '3f0f6a6e-6d0b-4f0e-9a57-0f3c9a4f8a52',
        },
      },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'API_KEY of the service.' },
        adminApiKey: { type: 'http', scheme: 'bearer', description: 'ADMIN_API_KEY of the service.' },
        accessKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A key that sees a part, and may do what is named: `read` or `subscribe`.',
        },
      },
    },
  };
}

const SECURITY: Readonly<Record<Operation['access'], readonly Json[]>> = {
  anyone: [],
  'issuer if set': [{ apiKey: [] }, {}],
  issuer: [{ apiKey: [] }],
  admin: [{ adminApiKey: [] }],
  'any key': [{ apiKey: [] }, { adminApiKey: [] }],
};

const EXISTS: Readonly<Record<Operation['access'], string>> = {
  anyone: '',
  'issuer if set': 'Needs API_KEY if the service has one.',
  issuer: 'Exists only if the service has API_KEY, and needs it.',
  admin: 'Exists only if the service has ADMIN_API_KEY, and needs it.',
  'any key': 'Exists only if the service has API_KEY or ADMIN_API_KEY, and needs one of them.',
};

function describe(operation: Operation): Json {
  const { id, tag, summary, description = TEXTS[id], access, scope, body, answers } = operation;
  const text = [description, EXISTS[access]].filter(Boolean).join('\n\n');
  const errors = [...errorsOf(operation)].map(([status, codes]) => [status, errorRef(status, codes)]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(text !== '' && { description: text }),
    security: [...SECURITY[access], ...(scope ? [{ accessKey: [scope] }] : [])],
    parameters: parametersOf(operation),
    ...(body && {
      requestBody: {
        required: true,
        description: `JSON of at most ${body.kind === 'small' ? '64 KB' : '50 MB'} and 20,000 values.`,
        content: {
          'application/json': {
            schema: refOf(body.schema),
            examples: mapValues(body.examples, (value) => ({ value })),
          },
        },
      },
    }),
    responses: {
      ...mapValues(answers, described),
      ...Object.fromEntries(errors),
    },
  };
}

function parametersOf({ pathParameters = {}, query, headers = {} }: Operation): Json[] {
  const path = Object.entries(pathParameters).map(([name, { description, example }]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string' },
    example,
  }));
  const shape = (query?.shape ?? {}) as Readonly<Record<string, z.ZodType>>;
  const others = [
    ...Object.entries<z.ZodType>(shape).map(([name, schema]) => ({ name, in: 'query', schema })),
    ...Object.entries(headers).map(([name, schema]) => ({ name, in: 'header', schema })),
  ].map(({ schema, ...parameter }) => {
    const { description, ...rest } = jsonSchemaOf(schema, 'input');
    return { ...parameter, required: false, description, schema: rest };
  });
  const requestId = { name: 'X-Request-Id', in: 'header', required: false, schema: { type: 'string' } };
  const used =
    '1 to 128 letters, digits, dots, colons, hyphens and underscores; otherwise the service makes one.';
  return [...path, ...others, { ...requestId, description: `The request's id: ${used}` }];
}

function described({ description, content, headers = {} }: Answer): Json {
  return {
    description,
    headers: {
      'X-Request-Id': REQUEST_ID,
      ...mapValues(headers, (header) => ({ ...header, schema: { type: 'string' } })),
    },
    ...(content && {
      content: Object.fromEntries(
        [content.mediaType].flat().map((mediaType) => [
          mediaType,
          {
            schema: refOf(content.schema),
            ...(content.examples && { examples: mapValues(content.examples, (value) => ({ value })) }),
          },
        ]),
      ),
    }),
  };
}

/** The same error of many operations is a component, named by its status and its codes. */
function errorRef(status: number, codes: readonly ErrorCode[]): Json {
  return codes.length > MOST_CODES_IN_NAME
    ? errorAnswer(status, codes)
    : { $ref: `#/components/responses/${nameOf(status, codes)}` };
}

function errorComponents(): Record<string, Json> {
  const components: Record<string, Json> = {};
  for (const operation of OPERATIONS)
    for (const [status, codes] of errorsOf(operation))
      if (codes.length <= MOST_CODES_IN_NAME) components[nameOf(status, codes)] = errorAnswer(status, codes);
  return components;
}

function nameOf(status: number, codes: readonly ErrorCode[]): string {
  return [status, ...codes].join('.');
}

function errorAnswer(status: number, codes: readonly ErrorCode[]): Json {
  const explained = codes.map((code) => {
    const { why, remedy, actor = 'operator' } = ERROR_CODES[code];
    const who = status === 500 ? ` (${actor})` : '';
    const text = `- \`${code}\`${who}: ${why}.${remedy === undefined ? '' : ` Remedy: ${remedy}.`}`;
    return text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  });
  return {
    description: [REASONS[status], ...explained].join('\n'),
    headers: {
      'X-Request-Id': REQUEST_ID,
      'X-Error-Code': { description: 'The code of the error.', schema: { type: 'string', enum: codes } },
      ...(status === 401 && { 'WWW-Authenticate': { schema: { type: 'string', const: 'Bearer' } } }),
      ...(codes.includes('MINT_STILL_WAITING') && {
        'X-Token-Id': {
          description: 'The token of the document, if it was stored: 64 hexadecimal digits.',
          schema: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        },
      }),
      ...((status === 429 || status === 503) && {
        'Retry-After': {
          description: 'Seconds after which to send it again.',
          schema: { type: 'string' },
          example: '10',
        },
      }),
    },
    content: {
      'application/json': { schema: refOf(codes.includes('CURSOR_EXPIRED') ? CURSOR_EXPIRED : ERROR) },
    },
  };
}

/** A schema that has an `id` is a component of this name. */
function refOf(schema: z.ZodType): Json {
  const id = schema.meta()?.id;
  return id === undefined ? jsonSchemaOf(schema, 'output') : { $ref: `#/components/schemas/${id}` };
}

/** The components of all bodies, and those that they refer to. */
function componentSchemas(): Record<string, Json> {
  const components: Record<string, Json> = {};
  const add = (schema: z.ZodType, io: 'input' | 'output'): void => {
    const id = schema.meta()?.id;
    if (id === undefined || id in components) return;
    const { $defs = {}, ...json } = jsonSchemaOf(schema, io);
    Object.assign(components, { [id]: json, ...mapValues($defs as Record<string, Json>, withoutId) });
  };
  for (const { body, answers } of OPERATIONS) {
    if (body) add(body.schema, 'input');
    for (const { content } of Object.values(answers)) if (content) add(content.schema, 'output');
  }
  add(ERROR, 'output');
  add(CURSOR_EXPIRED, 'output');
  return components;
}

/** JSON Schema (draft 2020-12) of a schema. Its references are to components. */
function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const json = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  return withoutId(JSON.parse(json.replaceAll('"#/$defs/', '"#/components/schemas/')) as Json);
}

function withoutId(schema: Json): Json {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== 'id' && name !== '$schema'));
}

function mapValues<Value, Mapped>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
