import { Router, type RouterMiddleware } from '@koa/router';
import type { Operation } from './description/operation';
import { requireAdminKey } from './middleware/admin-key';
import { requireApiKey } from './middleware/api-key';
import { declaredBody } from './middleware/declared-body';
import { smallJson } from './middleware/small-json';
import { checkQuery } from './query';

/** The keys of the service. An operation whose key is missing does not exist. */
export interface Keys {
  apiKey: string | undefined;
  adminApiKey: string | undefined;
}

/** A router of described operations. */
export interface OperationRouter {
  router: Router;
  /**
   * Answers an operation. The key, the query and a small body are checked before, as the operation describes
   * them.
   */
  answer<State>(this: void, operation: Operation, ...route: RouterMiddleware<State>[]): void;
}

/** Creates it. */
export function createOperationRouter({ apiKey, adminApiKey }: Keys): OperationRouter {
  const router = new Router();
  return {
    router,
    answer(operation, ...route) {
      const { access, method, path, query, body } = operation;
      const checks: RouterMiddleware[] = [];
      if (access === 'admin') {
        if (adminApiKey === undefined) return;
        checks.push(requireAdminKey(adminApiKey));
      } else if (access !== 'anyone') {
        if (apiKey === undefined && access === 'issuer') return;
        checks.push(requireApiKey(apiKey));
      }
      if (query) checks.push(checkQuery(query) as RouterMiddleware);
      if (body?.kind === 'small') checks.push(declaredBody, smallJson as RouterMiddleware);
      router[method](path.replace(/\{(\w+)\}/g, ':$1'), ...checks, ...(route as RouterMiddleware[]));
    },
  };
}
