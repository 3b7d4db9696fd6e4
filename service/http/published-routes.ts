import type { SigningKeys } from '../base/signing-keys';
import * as discovery from './description/discovery';
import type { OperationRouter } from './operation-router';
import { openApiDocument, reference } from './routes/description';
import { didDocument } from './routes/did-document';
import { eventSchemas } from './routes/event-schemas';
import { health, type HealthReport } from './routes/health';
import { jwks } from './routes/jwks';
import { metrics, type MetricsText } from './routes/metrics';
import { publishedFiles } from './routes/published-files';

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
  answer(discovery.GREETING, (ctx) => {
    ctx.body = GREETING;
  });
  answer(discovery.DID_DOCUMENT, didDocument(parts.didDocumentPath));
  answer(discovery.JWKS, jwks(parts.signingKeys));
  answer(discovery.PUBLISHED_FILE, publishedFiles());
  const schemas = eventSchemas(parts.domain);
  answer(discovery.LIST_SCHEMAS, schemas.list);
  answer(discovery.EVENT_SCHEMA, schemas.schema);
  answer(discovery.OPENAPI, openApiDocument);
  answer(discovery.REFERENCE, reference);
  answer(discovery.HEALTH_CHECK, health(parts.health));
  answer(discovery.METRICS, metrics(parts.metrics));
}
