import type Koa from 'koa';
import type { Console } from '../../console/console';
import type { AnswerManaged } from '../managed-routes';
import type { RequestState } from '../middleware/request-log';
import { createOperationRouter } from '../operation-router';
import { consoleRouter } from './console-router';
import { API, consoleGate, requireSession } from './gate';
import { toldErrors } from './told-errors';

/** The console, and what it shares with the public API. */
export interface MountedConsole extends Console {
  adminApiKey: string;
  answerManaged: AnswerManaged;
  mask: (text: string) => string;
}

/**
 * Adds the paths of the console: its page, its own data, and the operations of the public API again, where a
 * session takes the place of the keys.
 */
export function mountConsole(app: Koa<RequestState>, parts: MountedConsole): void {
  const operations = createOperationRouter(() => [requireSession], API);
  parts.answerManaged(operations, { hasDocuments: true });
  app.use(consoleGate(parts.sessions));
  app.use(toldErrors(parts.mask));
  app.use(consoleRouter(parts).routes());
  app.use(operations.router.routes());
}
