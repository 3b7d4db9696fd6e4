import Koa from 'koa';
import type { Console } from '../console/console';
import type { Logger } from '../base/logger';
import { mountConsole } from './console/mount-console';
import { privateAnswers } from './console/private-answers';
import { cors } from './middleware/cors';
import { errors } from './middleware/errors';
import { limitBodies, type BodyLimitsOptions } from './middleware/limit-bodies';
import { requestLog, type RequestState } from './middleware/request-log';
import { unanswered } from './middleware/unanswered';
import { wellFormed } from './middleware/well-formed';
import { checkKeys, createOperationRouter } from './operation-router';
import { createManagedRoutes, type ManagedParts } from './managed-routes';
import { answerPublished, type PublishedParts } from './published-routes';

/** The parts of the HTTP API. */
export interface HttpAppOptions extends ManagedParts, PublishedParts {
  apiKey: string | undefined;
  /** Without it the endpoints of the admin do not exist. */
  adminApiKey?: string | undefined;
  development: boolean;
  logger: Logger;
  mask: (text: string) => string;
  newId: () => string;
  /** Limits for the bodies that are processed at once. */
  bodyLimits?: BodyLimitsOptions;
  /** The console in the browser, which exists only with an admin key. */
  console?: Console | undefined;
}

/** The creator service's HTTP API (docs/specification.md, section 5). */
export function createHttpApp(options: HttpAppOptions): Koa<RequestState> {
  const { apiKey, adminApiKey, console: consoleParts } = options;
  const operations = createOperationRouter(checkKeys({ apiKey, adminApiKey }));
  const limit = limitBodies(options.bodyLimits);
  const answerManaged = createManagedRoutes(options, limit);
  answerPublished(operations, options);
  answerManaged(operations, { hasDocuments: apiKey !== undefined });
  const app = new Koa<RequestState>();
  app.use(requestLog(options.logger, options.newId));
  app.use(privateAnswers(cors));
  app.use(errors(options));
  app.use(wellFormed);
  app.use(unanswered);
  if (adminApiKey !== undefined && consoleParts !== undefined)
    mountConsole(app, { ...consoleParts, adminApiKey, answerManaged, mask: options.mask });
  app.use(operations.router.routes());
  app.use(operations.router.allowedMethods());
  // Called for errors that cannot be answered any more, as when the caller has disconnected.
  app.on('error', (error) => options.logger.warn({ error: error as unknown }, 'response failed'));
  return app;
}
