import { z } from 'zod';
import { BILL_OF_LADING_CONTEXT, CONTEXT_TYPE, SCHEMA_TYPE } from '../../base/published-files';
import type { Answer, Operation } from './operation';
import { ADDRESS, COUNT, FEED_STATE, REGISTRY_NAME, TEXT, TIME } from './values';

/** Any JSON object. Its own specification says what it has. */
const OBJECT = z.record(TEXT, z.unknown());

function json(
  description: string,
  schema: z.ZodType = OBJECT,
  mediaType: string | readonly string[] = 'application/json',
): Answer {
  return { description, content: { mediaType, schema } };
}

const HEADERS_OF_CACHEABLE = {
  ETag: { description: 'Identifies the content: send it in `If-None-Match`.', example: '"kX2…"' },
};
const NOT_MODIFIED: Answer = { description: 'Not modified: `If-None-Match` has the `ETag`.' };

function publicGet(
  id: string,
  path: string,
  summary: string,
  answers: Operation['answers'],
  more: Partial<Operation> = {},
): Operation {
  return { id, tag: 'Discovery', method: 'get', path, summary, access: 'anyone', answers, ...more };
}

/** GET / */
export const GREETING = publicGet('greet', '/', 'A greeting', {
  200: { description: 'A text.', content: { mediaType: 'text/plain', schema: TEXT } },
});

/** GET /.well-known/did.json */
export const DID_DOCUMENT = publicGet(
  'getDidDocument',
  '/.well-known/did.json',
  'The DID document of the issuer (did:web)',
  { 200: json('The DID document. Verifiers read the key of the credentials from it.') },
  { errors: { 500: ['DID_DOCUMENT_UNREADABLE'] } },
);

/** GET /.well-known/jwks.json */
export const JWKS = publicGet(
  'getWebhookKeys',
  '/.well-known/jwks.json',
  'The keys that verify webhooks',
  {
    200: json(
      'A JWK Set (RFC 7517).',
      z
        .strictObject({
          keys: z.array(
            z.strictObject({
              kty: z.literal('OKP'),
              crv: z.literal('Ed25519'),
              x: TEXT,
              kid: TEXT.meta({ description: 'The X-Service-Key-Id of its deliveries.' }),
              use: z.literal('sig'),
              alg: z.literal('EdDSA'),
              nbf: z.int().optional().meta({
                description: 'The key signs nothing before this second. Do not refuse a delivery for it.',
              }),
              exp: z.int().optional().meta({
                description: 'The key signs nothing from this second on. Do not refuse a delivery for it.',
              }),
            }),
          ),
        })
        .meta({ id: 'WebhookKeys' }),
      'application/jwk-set+json',
    ),
  },
  { errors: { 404: ['SIGNING_KEY_MISSING'] } },
);

/** GET /contexts/{file} */
export const PUBLISHED_FILE = publicGet(
  'getContextFile',
  '/contexts/{file}',
  'A JSON-LD context, or the JSON Schema of a subject',
  {
    200: {
      ...json('The file, which never changes.', OBJECT, [CONTEXT_TYPE, SCHEMA_TYPE]),
      headers: HEADERS_OF_CACHEABLE,
    },
    304: NOT_MODIFIED,
  },
  {
    pathParameters: {
      file: {
        description: 'A file of the service, or one that its operator put beside them.',
        example: BILL_OF_LADING_CONTEXT,
      },
    },
    errors: { 404: ['NOT_FOUND'] },
  },
);

/** GET /schemas */
export const LIST_SCHEMAS = publicGet('listEventSchemas', '/schemas', 'The schemas of all events', {
  200: {
    ...json('Their URLs.', z.array(TEXT).meta({ id: 'SchemaUrls' })),
    headers: HEADERS_OF_CACHEABLE,
  },
  304: NOT_MODIFIED,
});

/** GET /schemas/{file} */
export const EVENT_SCHEMA = publicGet(
  'getEventSchema',
  '/schemas/{file}',
  'The schema of an event',
  {
    200: {
      ...json('A JSON Schema (draft 2020-12).', OBJECT, 'application/schema+json'),
      headers: HEADERS_OF_CACHEABLE,
    },
    304: NOT_MODIFIED,
  },
  {
    pathParameters: {
      file: { description: 'The type of the event, and `.json`.', example: 'com.service.etr.minted.json' },
    },
    errors: { 404: ['NOT_FOUND'] },
  },
);

/** GET /openapi.json */
export const OPENAPI = publicGet('getDescription', '/openapi.json', 'This description', {
  200: { ...json('An OpenAPI 3.1 document.'), headers: HEADERS_OF_CACHEABLE },
  304: NOT_MODIFIED,
});

/** GET /docs */
export const REFERENCE = publicGet('getReference', '/docs', 'This description, to read', {
  200: {
    description: 'A page.',
    content: { mediaType: 'text/html', schema: TEXT },
    headers: HEADERS_OF_CACHEABLE,
  },
  304: NOT_MODIFIED,
});

const FEED = z.strictObject({
  network: TEXT,
  chainId: COUNT,
  registry: TEXT,
  state: FEED_STATE,
  since: TIME,
  nextBlock: COUNT.optional().meta({ description: 'The first block that has not been read.' }),
  headBlock: COUNT.optional(),
  catchUp: z
    .strictObject({
      blocksRead: z.int(),
      blocks: COUNT,
      blocksPerSecond: z.number(),
      secondsLeft: COUNT.optional(),
    })
    .optional(),
  code: TEXT.optional(),
  reason: TEXT.optional(),
});

const ISSUING = z.strictObject({
  mints: z
    .strictObject({
      waiting: COUNT,
      inFlight: COUNT,
      mined: COUNT,
      oldestSeconds: COUNT.optional(),
      lastFailure: z.strictObject({ code: TEXT, at: TIME }).optional(),
    })
    .optional(),
  signing: z.strictObject({ waiting: COUNT, busy: COUNT, threads: COUNT }),
  wallet: z
    .strictObject({ address: ADDRESS, balanceWei: TEXT, mintsAffordable: COUNT.optional(), readAt: TIME })
    .optional(),
});

const HEALTH = z
  .strictObject({
    status: z.enum(['ok', 'failing']),
    database: z
      .literal('removed')
      .optional()
      .meta({ description: 'The files of the database were removed: do not restart the service.' }),
    feeds: z.array(FEED),
    issuing: ISSUING.optional().meta({ description: 'Absent if settings for issuing are missing.' }),
    unfollowed: z
      .strictObject({
        deliveries: z.array(
          z.strictObject({ registry: REGISTRY_NAME, undelivered: COUNT, nextBlock: COUNT }),
        ),
        issuances: z.array(z.strictObject({ registry: REGISTRY_NAME, issuer: TEXT, unfinished: COUNT })),
      })
      .optional()
      .meta({ description: 'Work in the database that no setting follows.' }),
    subscriptions: z
      .array(z.strictObject({ id: TEXT, state: TEXT, failingSince: TIME.optional() }))
      .optional()
      .meta({ description: 'Subscriptions that are paused, gone or failing.' }),
  })
  .meta({ id: 'Health' });

/** GET /health */
export const HEALTH_CHECK = publicGet(
  'getHealth',
  '/health',
  'Whether every registry is read',
  {
    200: json("Every registry's events are read; or the database was removed.", HEALTH),
    503: {
      ...json('The events of a registry are not read.', HEALTH),
      headers: { 'X-Error-Code': { description: 'Always `UNHEALTHY`.', example: 'UNHEALTHY' } },
    },
  },
  { tag: 'Health and metrics' },
);

/** GET /metrics */
export const METRICS = publicGet(
  'getMetrics',
  '/metrics',
  'Metrics for Prometheus',
  { 200: { description: 'Metrics.', content: { mediaType: 'text/plain', schema: TEXT } } },
  { tag: 'Health and metrics' },
);
