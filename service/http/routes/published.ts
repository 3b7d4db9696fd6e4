import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Context } from 'koa';
import { Registry } from 'prom-client';
import { EVENT_SCHEMAS } from '../../../client/events';
import { ConfigurationError, messageOf, RequestError } from '../../base/errors';
import { PROJECT_ROOT } from '../../base/project-root';
import { PUBLISHED_FILES, readContextFile } from '../../base/published-files';
import { jwksOf, type SigningKeys } from '../../base/signing-keys';
import { DISCOVERY } from '../description/discovery';
import { ERROR_CODE_HEADER } from '../request-log';
import type { OperationRouter } from '../operation-router';

/** The parts of the paths that anybody may read. */
export interface PublishedParts {
  didDocumentPath: string;
  /** The host of the URLs that name the event schemas; undefined: their paths name them. */
  domain: string | undefined;
  /** Their public halves are published; undefined if there are none. */
  signingKeys: SigningKeys | undefined;
  health: () => Promise<HealthReport>;
  /** Metrics for Prometheus. */
  metrics: () => Promise<string>;
}

/** The body of GET /health: whether every registry's events are read, and the details. */
export interface HealthReport {
  status: 'ok' | 'failing';
  /** `removed`: everything is lost when the process ends. `unwritable`: nothing can be stored. */
  database?: 'removed' | 'unwritable' | undefined;
  feeds: readonly object[];
  /** Undefined when documents cannot be issued because settings are missing. */
  issuing: object | undefined;
  /** The conditions that hold; undefined if they are not known. */
  conditions?: readonly object[] | undefined;
}

const GREETING = 'Transferable Document Creator Service\n';

/** Not longer, because a later version of the service may describe other operations. */
const ONE_HOUR = { 'Cache-Control': 'public, max-age=3600' };

/** The page has no script, and loads nothing. */
const REFERENCE_HEADERS = {
  ...ONE_HOUR,
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
};

/** Short: a receiver that meets a new key id asks again, and must not get an earlier answer for long. */
const ONE_MINUTE = 'public, max-age=60';

/**
 * A published file never changes: a new revision gets a new file name (docs/specification.md 6.2).
 */
const ONE_YEAR_IMMUTABLE = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/** Answers the operations that need no key. */
export function answerPublished({ answer }: OperationRouter, parts: PublishedParts): void {
  const { didDocumentPath, domain, signingKeys, health, metrics } = parts;
  answer(DISCOVERY.greet, (ctx) => {
    ctx.body = GREETING;
  });

  // The file that `npx tdoc did` wrote. It is read for each request, so a rotated key needs no restart.
  answer(DISCOVERY.getDidDocument, async (ctx) => {
    ctx.body = await readDidDocument(didDocumentPath);
  });

  // A JWK Set (RFC 7517). It names the time of a change, so its content does not change with time.
  const keys = signingKeys && jwksOf(signingKeys);
  answer(DISCOVERY.getWebhookKeys, (ctx) => {
    if (keys === undefined) {
      const message = 'This service signs no webhooks: SIGNING_PRIVATE_KEY is not configured.';
      throw new RequestError('SIGNING_KEY_MISSING', message, { status: 404 });
    }
    ctx.body = keys;
    ctx.type = 'application/jwk-set+json';
    ctx.set('Cache-Control', ONE_MINUTE);
  });

  // The contexts and schemas of the service, byte for byte.
  const files = Object.entries(PUBLISHED_FILES).map(
    ([name, mediaType]) => [name, cacheable(readContextFile(name), mediaType, ONE_YEAR_IMMUTABLE)] as const,
  );
  answer(DISCOVERY.getContextFile, oneOf(files));

  const urlOf = (type: string): string =>
    `${domain === undefined ? '' : `https://${domain}`}/schemas/${type}.json`;
  const types = Object.keys(EVENT_SCHEMAS);
  answer(DISCOVERY.listEventSchemas, cacheableJson(types.map(urlOf)));
  const schemas = Object.entries(EVENT_SCHEMAS).map(([type, schema]) => {
    const $schema = 'https://json-schema.org/draft/2020-12/schema';
    const named = { $schema, $id: urlOf(type), title: type, ...schema };
    return [`${type}.json`, cacheableJson(named, 'application/schema+json')] as const;
  });
  answer(DISCOVERY.getEventSchema, oneOf(schemas));

  answer(DISCOVERY.getDescription, builtFile('dist/api/openapi.json', 'application/json', ONE_HOUR));
  const page = builtFile('dist/api/reference.html', 'text/html; charset=utf-8', REFERENCE_HEADERS);
  answer(DISCOVERY.getReference, page);

  // 200 while every registry's events are read. It is also 200 if the database was removed, or cannot be
  // written, because a 503 may lead to a restart.
  answer(DISCOVERY.getHealth, async (ctx) => {
    const report = await health();
    const isAlive = report.status === 'ok' || report.database !== undefined;
    ctx.status = isAlive ? 200 : 503;
    if (!isAlive) ctx.set(ERROR_CODE_HEADER, 'UNHEALTHY');
    ctx.body = report;
  });

  answer(DISCOVERY.getMetrics, async (ctx) => {
    ctx.body = await metrics();
    ctx.set('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE);
  });
}

/** Answers with the bytes of a file. */
type SendFile = (ctx: Context) => void;

/**
 * Serves a file that the build made. It is read at the first request: most processes are never asked.
 *
 * @throws the error `missing`, if it is given and the file cannot be read.
 */
export function builtFile(
  path: string,
  mediaType: string,
  headers: Readonly<Record<string, string>>,
  missing?: RequestError,
): SendFile {
  let file: SendFile | undefined;
  return (ctx) => {
    try {
      file ??= cacheable(readFileSync(resolve(PROJECT_ROOT, path)), mediaType, headers);
    } catch (thrown) {
      throw missing ?? thrown;
    }
    file(ctx);
  };
}

/** Answers with the file that the path names. */
function oneOf(files: readonly (readonly [string, SendFile])[]) {
  const byName = new Map(files);
  return (ctx: Context & { params: Record<string, string> }): void =>
    byName.get(ctx.params.file ?? '')?.(ctx);
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

function cacheableJson(value: object, mediaType = 'application/json'): SendFile {
  return cacheable(Buffer.from(JSON.stringify(value)), mediaType, ONE_HOUR);
}

/**
 * Serves bytes that are the same while the service runs. A conditional request for unchanged bytes gets 304
 * (RFC 9110, section 13.1.2).
 */
function cacheable(bytes: Buffer, mediaType: string, headers: Readonly<Record<string, string>>): SendFile {
  const etag = createHash('sha256').update(bytes).digest('base64url');
  return (ctx) => {
    ctx.set(headers);
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
