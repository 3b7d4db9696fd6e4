import { Router, type RouterMiddleware } from '@koa/router';
import type { Operation } from './description/operation';
import type { Access, Gate } from './gate';
import { declaredBody } from './read-body';
import { smallJson } from './middleware/json-body';
import type { AccessState } from './middleware/request-log';
import { checkQuery } from './query';

/** An operation that is described, or one of the console's page alone. */
export type RoutedOperation = Pick<Operation, 'method' | 'path' | 'query' | 'isHarmless'> & {
  access: Access;
  body?: { kind: 'small' | 'document' };
};

/** A router of operations. */
export interface OperationRouter {
  router: Router;
  /**
   * Answers an operation. The access, the query and a small body are checked before, as the operation
   * describes them.
   */
  answer<State>(
    this: void,
    operation: RoutedOperation,
    ...route: RouterMiddleware<State & AccessState>[]
  ): void;
}

export function createOperationRouter(gate: Gate): OperationRouter {
  const router = new Router();
  return {
    router,
    answer(operation, ...route) {
      const { method, path, query, body } = operation;
      const check = gate(operation);
      if (check === undefined) return;
      const checks = [check as RouterMiddleware];
      if (query) checks.push(checkQuery(query) as RouterMiddleware);
      if (body?.kind === 'small') checks.push(declaredBody, smallJson as RouterMiddleware);
      const pattern = path.replace(/\{(\w+)\}/g, ':$1');
      router[method](pattern, ...checks, ...(route as RouterMiddleware[]));
    },
  };
}
