import { Router } from '@koa/router';
import Koa from 'koa';
import type { AcceptDocument } from '../issuance/issue-document';
import type { Logger } from '../base/logger';
import type { Registries } from '../registries/registries';
import { PUBLISHED_FILES, publishedPath } from '../base/published-files';
import type { SigningKeys } from '../base/signing-keys';
import { acceptDocument } from './middleware/accept-document';
import { limitBodies, type BodyLimitsOptions } from './middleware/limit-bodies';
import { declaredBody } from './middleware/declared-body';
import { requireAdminKey } from './middleware/admin-key';
import { requireApiKey } from './middleware/api-key';
import { callersAtOnce } from './middleware/callers-at-once';
import { callerLeft } from './middleware/caller-left';
import { cors } from './middleware/cors';
import { errors } from './middleware/errors';
import { idempotencyKey } from './middleware/idempotency-key';
import { jsonBody } from './middleware/json-body';
import { requestLog, type RequestState } from './middleware/request-log';
import { smallJson } from './middleware/small-json';
import { unanswered } from './middleware/unanswered';
import { wellFormed } from './middleware/well-formed';
import { createDocument, type CreateState } from './routes/create-document';
import { didDocument } from './routes/did-document';
import { eventSchemas } from './routes/event-schemas';
import { health, type HealthReport } from './routes/health';
import { issuedDocument, type IssuedDocuments } from './routes/issued-document';
import { listDocuments } from './routes/list-documents';
import { jwks } from './routes/jwks';
import { metrics, type MetricsText } from './routes/metrics';
import { publishedFile } from './routes/published-file';
import { addRegistry, listRegistries, removeRegistry } from './routes/registries';
import { subscriptionRouter, type SubscriptionRoutes } from './routes/subscriptions';

/** The parts of the HTTP API. */
export interface HttpAppOptions {
  acceptDocument: AcceptDocument;
  didDocumentPath: string;
  /** The host of the URLs that name the event schemas. */
  domain: string | undefined;
  /** Their public halves are published; undefined if there are none. */
  signingKeys: SigningKeys | undefined;
  apiKey: string | undefined;
  /** Without it the endpoints of the admin do not exist. */
  adminApiKey?: string | undefined;
  development: boolean;
  logger: Logger;
  mask: (text: string) => string;
  newId: () => string;
  health: () => Promise<HealthReport>;
  metrics: MetricsText;
  /** The documents of GET /documents and GET /documents/{tokenId}, which exist only with an API key. */
  issuedDocuments?: IssuedDocuments | undefined;
  /** The followed registries, for the admin. */
  registries?: Registries | undefined;
  /** How many POST /create may be under way at once; undefined: any number. */
  callersAtOnce?: number | undefined;
  /** Limits for the bodies that are processed at once. */
  bodyLimits?: BodyLimitsOptions;
  /** The paths under /subscriptions, which exist only with an admin key. */
  subscriptions?: SubscriptionRoutes | undefined;
}

const GREETING = 'Transferable Document Creator Service\n';

/** The creator service's HTTP API (docs/specification.md, section 5). */
export function createHttpApp(options: HttpAppOptions): Koa<RequestState> {
  const { apiKey, issuedDocuments } = options;
  const hasDocuments = apiKey !== undefined && issuedDocuments !== undefined;
  const router = new Router<CreateState>();
  router.get('/', (ctx) => {
    ctx.body = GREETING;
  });
  router.get('/.well-known/did.json', didDocument(options.didDocumentPath));
  router.get('/.well-known/jwks.json', jwks(options.signingKeys));
  for (const [fileName, mediaType] of Object.entries(PUBLISHED_FILES)) {
    router.get(publishedPath(fileName), publishedFile(fileName, mediaType));
  }
  for (const [path, answer] of eventSchemas(options.domain)) router.get(path, answer);
  router.get('/health', health(options.health));
  router.get('/metrics', metrics(options.metrics));
  router.post(
    '/create/:documentId',
    callerLeft,
    requireApiKey(options.apiKey),
    acceptDocument(options.acceptDocument),
    callersAtOnce(options.callersAtOnce ?? Infinity),
    idempotencyKey,
    declaredBody,
    limitBodies(options.bodyLimits),
    jsonBody,
    createDocument({ hasDocuments }),
  );
  // Documents are confidential, so these paths do not exist without an API key.
  if (hasDocuments) {
    const hasKey = requireApiKey(apiKey);
    router.get('/documents', hasKey, listDocuments(issuedDocuments));
    router.get('/documents/:tokenId', hasKey, issuedDocument(issuedDocuments));
  }

  const { adminApiKey, registries } = options;
  if (adminApiKey !== undefined && registries !== undefined) {
    const isAdmin = requireAdminKey(adminApiKey);
    router.get('/registries', isAdmin, listRegistries(registries));
    router.post('/registries', isAdmin, declaredBody, smallJson, addRegistry(registries));
    router.delete('/registries/:chainId/:address', isAdmin, removeRegistry(registries));
  }

  const app = new Koa<RequestState>();
  app.use(requestLog(options.logger, options.newId));
  app.use(cors);
  app.use(errors(options));
  app.use(wellFormed);
  app.use(unanswered);
  app.use(router.routes());
  app.use(router.allowedMethods());
  if (options.subscriptions) {
    const subscriptions = subscriptionRouter(options.subscriptions);
    app.use(subscriptions.routes());
    app.use(subscriptions.allowedMethods());
  }
  // Called for errors that cannot be answered any more, as when the caller has disconnected.
  app.on('error', (error) => options.logger.warn({ error: error as unknown }, 'response failed'));
  return app;
}
