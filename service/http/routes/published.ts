import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Middleware } from 'koa';
import { EVENT_SCHEMAS } from '../../../client/events';
import { ConfigurationError, messageOf } from '../../base/errors';
import { PUBLISHED_FILES, readContextFile } from '../../base/published-files';
import { jwksOf, type SigningKeys } from '../../base/signing-keys';
import { DISCOVERY } from '../description/discovery';
import { openApi } from '../description/openapi';
import { referencePage } from '../description/reference-page';
import { ERROR_CODE_HEADER, HttpError } from '../middleware/errors';
import type { OperationRouter } from '../operation-router';

/** The parts of the paths that anybody may read. */
export interface PublishedParts {
  didDocumentPath: string;
  /** The host of the URLs that name the event schemas. */
  domain: string | undefined;
  /** Their public halves are published; undefined if there are none. */
  signingKeys: SigningKeys | undefined;
  health: () => Promise<HealthReport>;
  metrics: MetricsText;
}

const GREETING = 'Transferable Document Creator Service\n';

/** Answers the operations that need no key. */
export function answerPublished({ answer }: OperationRouter, parts: PublishedParts): void {
  answer(DISCOVERY.greet, (ctx) => {
    ctx.body = GREETING;
  });
  answer(DISCOVERY.getDidDocument, didDocument(parts.didDocumentPath));
  answer(DISCOVERY.getWebhookKeys, jwks(parts.signingKeys));
  answer(DISCOVERY.getContextFile, publishedFiles());
  const schemas = eventSchemas(parts.domain);
  answer(DISCOVERY.listEventSchemas, schemas.list);
  answer(DISCOVERY.getEventSchema, schemas.schema);
  answer(DISCOVERY.getDescription, openApiDocument);
  answer(DISCOVERY.getReference, reference);
  answer(DISCOVERY.getHealth, health(parts.health));
  answer(DISCOVERY.getMetrics, metrics(parts.metrics));
}

/** Not longer, because a later version of the service may describe other operations. */
const ONE_HOUR = 'public, max-age=3600';

const POLICY = [
  "default-src 'none'; style-src 'unsafe-inline'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** GET /openapi.json: the OpenAPI description of this API. */
const openApiDocument = madeOnce(() =>
  cacheable(Buffer.from(JSON.stringify(openApi())), 'application/json', ONE_HOUR),
);

/** GET /docs: the description as a page. It has no script, and loads nothing. */
const reference = madeOnce((): Middleware => {
  const page = cacheable(Buffer.from(referencePage(openApi())), 'text/html; charset=utf-8', ONE_HOUR);
  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', POLICY);
    ctx.set('X-Content-Type-Options', 'nosniff');
    await page(ctx, next);
  };
});

/** Makes it at the first request: most processes are never asked. */
export function madeOnce(make: () => Middleware): Middleware {
  let made: Middleware | undefined;
  return async (ctx, next) => {
    await (made ??= make())(ctx, next);
  };
}

/**
 * GET /.well-known/did.json: the file that `npx tdoc did` wrote. It is read for each request, so a rotated
 * key needs no restart.
 */
function didDocument(path: string): Middleware {
  return async (ctx) => {
    ctx.body = await readDidDocument(path);
  };
}

async function readDidDocument(path: string): Promise<object> {
  try {
    const document: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof document === 'object' && document !== null) return document;
    throw new Error('it is not a JSON object');
  } catch (cause) {
    const remedy = 'Make it with `npx tdoc did`, or set DID_DOCUMENT_PATH.';
    const message = `The DID document ${path} cannot be read: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('DID_DOCUMENT_UNREADABLE', message, { cause, remedy });
  }
}

/**
 * The answers under `/schemas`: the list of the schemas' URLs, and the JSON Schema of each event type.
 *
 * @param domain host of the URLs. If it is undefined, the schemas are named by their paths.
 */
function eventSchemas(domain: string | undefined): {
  list: Middleware;
  schema: Middleware<object, { params: Record<string, string> }>;
} {
  const urlOf = (file: string): string =>
    domain === undefined ? `/schemas/${file}` : `https://${domain}/schemas/${file}`;
  const json = (value: object, mediaType: string): Middleware =>
    cacheable(Buffer.from(JSON.stringify(value)), mediaType, ONE_HOUR);
  const schemas = new Map(
    Object.entries(EVENT_SCHEMAS).map(([type, schema]): [string, Middleware] => {
      const file = `${type}.json`;
      const $schema = 'https://json-schema.org/draft/2020-12/schema';
      return [file, json({ $schema, $id: urlOf(file), title: type, ...schema }, 'application/schema+json')];
    }),
  );
  return {
    list: json([...schemas.keys()].map(urlOf), 'application/json'),
    async schema(ctx, next) {
      await schemas.get(ctx.params.file ?? '')?.(ctx, next);
    },
  };
}

/** Whether every registry's events are read, and the details. */
export interface HealthReport {
  isHealthy: boolean;
  /** Whether everything is lost when the process ends. */
  isDatabaseRemoved?: boolean;
  feeds: readonly object[];
  /** Undefined when documents cannot be issued because settings are missing. */
  issuing: object | undefined;
  /** Work in the database that no setting follows; undefined if there is none or it is not known. */
  unfollowed?: object | undefined;
  /** Subscriptions that are paused, gone or failing; undefined if there are none or it is not known. */
  subscriptions?: readonly object[] | undefined;
}

/**
 * GET /health: 200 while every registry's events are read, otherwise 503. It is also 200 if the database was
 * removed, because a 503 may lead to a restart.
 */
function health(report: () => Promise<HealthReport>): Middleware {
  return async (ctx) => {
    const { isHealthy, isDatabaseRemoved = false, ...details } = await report();
    const isAlive = isHealthy || isDatabaseRemoved;
    ctx.status = isAlive ? 200 : 503;
    if (!isAlive) ctx.set(ERROR_CODE_HEADER, 'UNHEALTHY');
    ctx.body = {
      status: isHealthy && !isDatabaseRemoved ? 'ok' : 'failing',
      ...(isDatabaseRemoved && { database: 'removed' }),
      ...details,
    };
  };
}

/** Short: a receiver that meets a new key id asks again, and must not get an earlier answer for long. */
const ONE_MINUTE = 'public, max-age=60';

/**
 * GET /.well-known/jwks.json: the public keys that verify webhooks, as a JWK Set (RFC 7517). It names the
 * time of a change, so its content does not change with time.
 */
function jwks(signingKeys: SigningKeys | undefined): Middleware {
  if (signingKeys === undefined)
    return () => {
      const message = 'This service signs no webhooks: SIGNING_PRIVATE_KEY is not configured.';
      throw new HttpError(404, 'SIGNING_KEY_MISSING', message);
    };
  const published = jwksOf(signingKeys);
  return (ctx) => {
    ctx.body = published;
    ctx.type = 'application/jwk-set+json';
    ctx.set('Cache-Control', ONE_MINUTE);
  };
}

/** Metrics in a text format. */
export interface MetricsText {
  contentType: string;
  text: () => Promise<string>;
}

/** GET /metrics, for Prometheus. */
function metrics({ contentType, text }: MetricsText): Middleware {
  return async (ctx) => {
    ctx.body = await text();
    ctx.set('Content-Type', contentType);
  };
}

/**
 * A published file never changes: a new revision gets a new file name (docs/specification.md 6.2).
 */
const ONE_YEAR_IMMUTABLE = 'public, max-age=31536000, immutable';

/** Serves the contexts and schemas of the service, byte for byte. */
function publishedFiles(): Middleware<object, { params: Record<string, string> }> {
  const files = new Map(
    Object.entries(PUBLISHED_FILES).map(([name, mediaType]): [string, Middleware] => [
      name,
      cacheable(readContextFile(name), mediaType, ONE_YEAR_IMMUTABLE),
    ]),
  );
  return async (ctx, next) => {
    await files.get(ctx.params.file ?? '')?.(ctx, next);
  };
}

/**
 * Serves bytes that are the same while the service runs. A conditional request for unchanged bytes gets 304
 * (RFC 9110, section 13.1.2).
 */
export function cacheable(bytes: Buffer, mediaType: string, cacheControl: string): Middleware {
  const etag = createHash('sha256').update(bytes).digest('base64url');
  return (ctx) => {
    ctx.set('Cache-Control', cacheControl);
    ctx.etag = etag;
    ctx.status = 200;
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    ctx.type = mediaType;
    ctx.body = bytes;
  };
}
