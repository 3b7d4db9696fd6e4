import { Router, type RouterMiddleware } from '@koa/router';
import type { Operation } from './description/operation';
import { requireAdminKey } from './middleware/admin-key';
import { requireApiKey } from './middleware/api-key';
import { declaredBody } from './middleware/declared-body';
import { smallJson } from './middleware/json-body';
import { checkQuery } from './query';

/** The keys of the service. An operation whose key is missing does not exist. */
export interface Keys {
  apiKey: string | undefined;
  adminApiKey: string | undefined;
}

/** The checks before an operation that needs this access. Undefined: the operation does not exist. */
export type CheckAccess = (access: Operation['access']) => RouterMiddleware[] | undefined;

/** A router of described operations. */
export interface OperationRouter {
  router: Router;
  /**
   * Answers an operation. The access, the query and a small body are checked before, as the operation
   * describes them.
   */
  answer<State>(this: void, operation: Operation, ...route: RouterMiddleware<State>[]): void;
}

/** @param prefix beginning of the paths of all operations. */
export function createOperationRouter(checkAccess: CheckAccess, prefix = ''): OperationRouter {
  const router = new Router();
  return {
    router,
    answer({ access, method, path, query, body }, ...route) {
      const checks = checkAccess(access);
      if (checks === undefined) return;
      if (query) checks.push(checkQuery(query) as RouterMiddleware);
      if (body?.kind === 'small') checks.push(declaredBody, smallJson as RouterMiddleware);
      const pattern = `${prefix}${path.replace(/\{(\w+)\}/g, ':$1')}`;
      router[method](pattern, ...checks, ...(route as RouterMiddleware[]));
    },
  };
}

/** The key that each operation of the public API needs. */
export function checkKeys({ apiKey, adminApiKey }: Keys): CheckAccess {
  return (access) => {
    if (access === 'anyone') return [];
    if (access === 'admin') return adminApiKey === undefined ? undefined : [requireAdminKey(adminApiKey)];
    return apiKey === undefined && access === 'issuer' ? undefined : [requireApiKey(apiKey)];
  };
}
