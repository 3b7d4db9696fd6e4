import Koa from 'koa';
import type { AcceptDocument } from '../issuance/issue-document';
import type { Logger } from '../base/logger';
import type { Registries } from '../registries/registries';
import type { SigningKeys } from '../base/signing-keys';
import * as discovery from './description/discovery';
import { CREATE_DOCUMENT, GET_DOCUMENT, LIST_DOCUMENTS } from './description/documents';
import { ADD_REGISTRY, LIST_REGISTRIES, REMOVE_REGISTRY } from './description/registries';
import { acceptDocument } from './middleware/accept-document';
import { limitBodies, type BodyLimitsOptions } from './middleware/limit-bodies';
import { declaredBody } from './middleware/declared-body';
import { callersAtOnce } from './middleware/callers-at-once';
import { callerLeft } from './middleware/caller-left';
import { cors } from './middleware/cors';
import { errors } from './middleware/errors';
import { idempotencyKey } from './middleware/idempotency-key';
import { jsonBody } from './middleware/json-body';
import { requestLog, type RequestState } from './middleware/request-log';
import { unanswered } from './middleware/unanswered';
import { wellFormed } from './middleware/well-formed';
import { createOperationRouter } from './operation-router';
import { createDocument } from './routes/create-document';
import { openApiDocument, reference } from './routes/description';
import { didDocument } from './routes/did-document';
import { eventSchemas } from './routes/event-schemas';
import { health, type HealthReport } from './routes/health';
import { issuedDocument, type IssuedDocuments } from './routes/issued-document';
import { listDocuments } from './routes/list-documents';
import { jwks } from './routes/jwks';
import { metrics, type MetricsText } from './routes/metrics';
import { publishedFile } from './routes/published-file';
import { addRegistry, listRegistries, removeRegistry } from './routes/registries';
import { answerSubscriptions, type SubscriptionRoutes } from './routes/subscriptions';

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
  const { apiKey, adminApiKey, issuedDocuments, registries, subscriptions } = options;
  const hasDocuments = apiKey !== undefined && issuedDocuments !== undefined;
  const operations = createOperationRouter({ apiKey, adminApiKey });
  const { answer, router } = operations;
  answer(discovery.GREETING, (ctx) => {
    ctx.body = GREETING;
  });
  answer(discovery.DID_DOCUMENT, didDocument(options.didDocumentPath));
  answer(discovery.JWKS, jwks(options.signingKeys));
  for (const [fileName, operation] of Object.entries(discovery.PUBLISHED))
    answer(operation, publishedFile(fileName));
  const schemas = eventSchemas(options.domain);
  answer(discovery.LIST_SCHEMAS, schemas.list);
  answer(discovery.EVENT_SCHEMA, schemas.schema);
  answer(discovery.OPENAPI, openApiDocument);
  answer(discovery.REFERENCE, reference);
  answer(discovery.HEALTH_CHECK, health(options.health));
  answer(discovery.METRICS, metrics(options.metrics));
  answer(
    CREATE_DOCUMENT,
    callerLeft,
    acceptDocument(options.acceptDocument),
    callersAtOnce(options.callersAtOnce ?? Infinity),
    idempotencyKey,
    declaredBody,
    limitBodies(options.bodyLimits),
    jsonBody,
    createDocument({ hasDocuments }),
  );
  // Documents are confidential, so these paths do not exist without an API key.
  if (issuedDocuments) {
    answer(LIST_DOCUMENTS, listDocuments(issuedDocuments));
    answer(GET_DOCUMENT, issuedDocument(issuedDocuments));
  }
  if (registries) {
    answer(LIST_REGISTRIES, listRegistries(registries));
    answer(ADD_REGISTRY, addRegistry(registries));
    answer(REMOVE_REGISTRY, removeRegistry(registries));
  }
  if (subscriptions) answerSubscriptions(operations, subscriptions);

  const app = new Koa<RequestState>();
  app.use(requestLog(options.logger, options.newId));
  app.use(cors);
  app.use(errors(options));
  app.use(wellFormed);
  app.use(unanswered);
  app.use(router.routes());
  app.use(router.allowedMethods());
  // Called for errors that cannot be answered any more, as when the caller has disconnected.
  app.on('error', (error) => options.logger.warn({ error: error as unknown }, 'response failed'));
  return app;
}
