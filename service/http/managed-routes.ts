import type { RouterMiddleware } from '@koa/router';
import type { AcceptDocument } from '../issuance/issue-document';
import type { Registries } from '../followed-registries/registries';
import { CREATE_DOCUMENT, GET_DOCUMENT, LIST_DOCUMENTS } from './description/documents';
import { onlyLooks } from './description/operation';
import { ADD_REGISTRY, LIST_REGISTRIES, REMOVE_REGISTRY } from './description/registries';
import {
  acceptDocument,
  idempotencyKey,
  createDocument,
  issuedDocument,
  listDocuments,
  type IssuedDocuments,
} from './routes/documents';
import { callerLeft, callersAtOnce, limitBodies, type BodyLimitsOptions } from './middleware/limits';
import { declaredBody } from './read-body';
import { HttpError } from './middleware/errors';
import { jsonBody } from './middleware/json-body';
import type { OperationRouter } from './operation-router';
import { addRegistry, listRegistries, removeRegistry } from './routes/registries';
import { answerSubscriptions, type SubscriptionRoutes } from './routes/subscriptions';

/** Seconds in `Retry-After` after which an operator may have restored the database. */
const ASK_AGAIN_S = '60';

/** The parts of the paths that issue documents, and manage registries and subscriptions. */
export interface ManagedParts {
  apiKey: string | undefined;
  acceptDocument: AcceptDocument;
  /** The documents of GET /documents and GET /documents/{tokenId}, which exist only with an API key. */
  issuedDocuments?: IssuedDocuments | undefined;
  /** The followed registries, for the admin. */
  registries?: Registries | undefined;
  /** How many POST /create may be under way at once; undefined: any number. */
  callersAtOnce?: number | undefined;
  /** The paths under /subscriptions, which exist only with an admin key. */
  subscriptions?: SubscriptionRoutes | undefined;
  /** Whether what is stored now may be lost. */
  isDatabaseRemoved?: () => boolean;
  /** Limits for the bodies that are processed at once. */
  bodyLimits?: BodyLimitsOptions;
}

/** Answers these operations. */
export function answerManaged({ router, answer: answerAlways }: OperationRouter, parts: ManagedParts): void {
  const { apiKey, issuedDocuments, registries, subscriptions } = parts;
  const storable = ifStorable(parts.isDatabaseRemoved ?? (() => false));
  const answer: OperationRouter['answer'] = (operation, ...route) =>
    onlyLooks(operation) ? answerAlways(operation, ...route) : answerAlways(operation, storable, ...route);
  answer(
    CREATE_DOCUMENT,
    callerLeft,
    acceptDocument(parts.acceptDocument),
    callersAtOnce(parts.callersAtOnce ?? Infinity),
    idempotencyKey,
    declaredBody,
    limitBodies(parts.bodyLimits),
    jsonBody,
    createDocument(({ session }) => issuedDocuments !== undefined && (apiKey ?? session) !== undefined),
  );
  // Documents are confidential, so these paths do not exist without an API key, except for the console.
  if (issuedDocuments) {
    answer(LIST_DOCUMENTS, listDocuments(issuedDocuments));
    answer(GET_DOCUMENT, issuedDocument(issuedDocuments));
  }
  if (registries) {
    answer(LIST_REGISTRIES, listRegistries(registries));
    answer(ADD_REGISTRY, addRegistry(registries));
    answer(REMOVE_REGISTRY, removeRegistry(registries));
  }
  if (subscriptions) answerSubscriptions({ router, answer }, subscriptions);
}

/** Refuses to store anything in a database that was removed. */
function ifStorable(isDatabaseRemoved: () => boolean): RouterMiddleware {
  return async (ctx, next) => {
    if (isDatabaseRemoved()) {
      ctx.set('Retry-After', ASK_AGAIN_S);
      const message = 'The database was removed, so nothing is stored until the operator has restored it.';
      throw new HttpError(503, 'DATABASE_REMOVED', message);
    }
    await next();
  };
}
