import * as z from 'zod';
import { BILL_OF_LADING_CONTEXT, CONTEXT_TYPE, SCHEMA_TYPE } from '../../base/published-files';
import { chapter, json, type Answer } from './operation';
import { component, ADDRESS, COUNT, TEXT, TIME } from '../../answers/views';

/** The answers of a path that the caller may keep. */
function kept(answer: Answer): Record<number, Answer> {
  const ETag = { description: 'Identifies the content: send it in `If-None-Match`.', example: '"kX2…"' };
  const notModified = { description: 'Not modified: `If-None-Match` has the `ETag`.' };
  return { 200: { ...answer, headers: { ETag } }, 304: notModified };
}

function text(description: string, mediaType: string): Answer {
  return { description, content: { mediaType, schema: TEXT } };
}

const WEBHOOK_KEYS = component('WebhookKeys', {
  keys: z.array(
    z.strictObject({
      kty: z.literal('OKP'),
      crv: z.literal('Ed25519'),
      x: TEXT,
      kid: TEXT.describe('The X-Service-Key-Id of its deliveries.'),
      use: z.literal('sig'),
      alg: z.literal('EdDSA'),
      nbf: z
        .int()
        .optional()
        .describe('The key signs nothing before this second. Do not refuse a delivery for it.'),
      exp: z
        .int()
        .optional()
        .describe('The key signs nothing from this second on. Do not refuse a delivery for it.'),
    }),
  ),
});

/** With several nodes only. */
const NODES = {
  confirmedBy: COUNT.optional().describe(
    'How many nodes must give an answer before it counts. 1: one node is left.',
  ),
  nodes: z
    .array(
      z.strictObject({
        url: TEXT.describe('Without its secrets.'),
        state: z.enum(['up', 'away']),
        since: TIME,
        reason: TEXT.optional(),
        headBlock: COUNT.optional(),
        differences: COUNT.describe('Answers that differed from those of two others.'),
        lastDifference: z
          .strictObject({ at: TIME, block: TEXT.optional(), difference: TEXT })
          .optional()
          .describe('The last one within ten minutes.'),
      }),
    )
    .optional()
    .describe('Absent with a single node.'),
};

/** The reading of a registry's events. */
export const FEED = z.strictObject({
  network: TEXT,
  chainId: COUNT,
  registry: TEXT,
  state: z
    .enum(['starting', 'following', 'standby', 'failing', 'stopped'])
    .describe(
      '`starting`: the registry has not been found on the chain yet; `following`: its events are read; ' +
        '`standby`: another process reads them; `failing`: the node cannot be read now; `stopped`: an ' +
        'operator has to act.',
    ),
  since: TIME,
  nextBlock: COUNT.optional().describe('The first block that has not been read.'),
  headBlock: COUNT.optional(),
  finalBlock: COUNT.optional().describe('The highest final block: blocks up to it are read.'),
  catchUp: z
    .strictObject({
      blocksRead: z.int(),
      blocks: COUNT,
      blocksPerSecond: z.number().describe('Of the last minute.'),
      chainBlocksPerSecond: z.number().describe('Blocks that became final meanwhile.'),
      secondsLeft: COUNT.optional().describe(
        'Absent unless blocks are read faster than the chain makes them.',
      ),
      isEndless: z.boolean().describe('At this rate the feed never catches up.'),
      code: TEXT.optional(),
      reason: TEXT.optional().describe('What made it slower within the last two minutes.'),
      remedy: TEXT.optional(),
    })
    .optional(),
  code: TEXT.optional(),
  reason: TEXT.optional().describe("Why it is not read; also in the node's own words."),
  remedy: TEXT.optional().describe('What to do about it.'),
  ...NODES,
});

/** `gasOfMint`: the node's estimate of a mint without a remark, with a margin, or the documented one. */
const AFFORDABLE = { mintsAffordable: COUNT.optional(), gasOfMint: COUNT, isGasEstimated: z.boolean() };

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
  ...NODES,
  signers: z
    .array(
      z.strictObject({
        key: z.enum(['wallet', 'issuer']).describe('The key that it signs with.'),
        at: TEXT.describe('Its URL without secrets, or the module and its token.'),
        state: z.enum(['unknown', 'up', 'failing']),
        since: TIME,
        code: TEXT.optional().describe('Why it fails.'),
        wrongAnswers: COUNT.describe('Answers that were not the signature asked for.'),
      }),
    )
    .describe('The remote signers. Empty if all keys are in the process.'),
  wallet: z.strictObject({ address: ADDRESS, balanceWei: TEXT, ...AFFORDABLE, readAt: TIME }).optional(),
});

const HEALTH = component('Health', {
  status: z.enum(['ok', 'failing']),
  database: z
    .enum(['removed', 'unwritable'])
    .optional()
    .describe('`removed`: its files are gone, do not restart the service. `unwritable`: its disk is full, …'),
  feeds: z.array(FEED),
  issuing: ISSUING.optional().describe('Absent if settings for issuing are missing.'),
  conditions: z
    .array(
      z.strictObject({
        what: TEXT.describe('The kind of the condition.'),
        subject: TEXT.describe('The thing that has it: `subscription/default`, `wallet`, …'),
        since: TIME,
        detail: z.record(TEXT, z.union([TEXT, z.number()])).describe('What is known of it, for programs.'),
        severity: z.enum(['error', 'warning']),
        message: TEXT,
        remedy: TEXT,
      }),
    )
    .optional()
    .describe('All that is wrong, the errors first. Absent while the database does not answer.'),
});

/** Public paths, and those for the operator of the service. */
export const DISCOVERY = chapter('Discovery', 'anyone', {
  getDidDocument: {
    request: 'GET /.well-known/did.json',
    summary: 'The DID document of the issuer (did:web)',
    answers: { 200: json('The DID document. Verifiers read the key of the credentials from it.') },
    errors: { 500: ['DID_DOCUMENT_UNREADABLE'] },
  },
  getWebhookKeys: {
    request: 'GET /.well-known/jwks.json',
    summary: 'The keys that verify webhooks',
    answers: { 200: json('A JWK Set (RFC 7517).', WEBHOOK_KEYS, { mediaType: 'application/jwk-set+json' }) },
    errors: { 404: ['SIGNING_KEY_MISSING'] },
  },
  getContextFile: {
    request: 'GET /contexts/{file}',
    summary: 'A JSON-LD context, or the JSON Schema of a subject',
    pathParameters: {
      file: {
        description: 'A file of the service, or one that its operator put beside them.',
        example: BILL_OF_LADING_CONTEXT,
      },
    },
    answers: kept(
      json('The file, which never changes.', undefined, { mediaType: [CONTEXT_TYPE, SCHEMA_TYPE] }),
    ),
    errors: { 404: ['NOT_FOUND'] },
  },
  listEventSchemas: {
    request: 'GET /schemas',
    summary: 'The schemas of all events',
    answers: kept(json('Their URLs.', z.array(TEXT).meta({ id: 'SchemaUrls' }))),
  },
  getEventSchema: {
    request: 'GET /schemas/{file}',
    summary: 'The schema of an event',
    pathParameters: {
      file: { description: 'The type of the event, and `.json`.', example: 'com.service.etr.minted.json' },
    },
    answers: kept(
      json('A JSON Schema (draft 2020-12).', undefined, { mediaType: 'application/schema+json' }),
    ),
    errors: { 404: ['NOT_FOUND'] },
  },
  getDescription: {
    request: 'GET /openapi.json',
    summary: 'This description',
    answers: kept(json('An OpenAPI 3.1 document.')),
  },
  getReference: {
    request: 'GET /docs',
    summary: 'This description, to read',
    answers: kept(text('A page.', 'text/html')),
  },
  getHealth: {
    tag: 'Health and metrics',
    request: 'GET /health',
    summary: 'Whether every registry is read',
    answers: {
      200: json("Every registry's events are read; or `database` says what is wrong.", HEALTH),
      503: json('The events of a registry are not read.', HEALTH, {
        headers: { 'X-Error-Code': { description: 'Always `UNHEALTHY`.', example: 'UNHEALTHY' } },
      }),
    },
  },
  getMetrics: {
    tag: 'Health and metrics',
    request: 'GET /metrics',
    summary: 'Metrics for Prometheus',
    answers: { 200: text('Metrics.', 'text/plain') },
  },
  greet: {
    request: 'GET /',
    summary: 'A greeting',
    answers: { 200: text('A text.', 'text/plain') },
  },
});
