import type { Middleware } from 'koa';
import {
  BusyError,
  CallerLeftError,
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
} from '../../base/errors';
import { HttpError, logFailure, STATUS_OF_REQUEST_ERRORS } from '../middleware/errors';
import type { RequestState } from '../middleware/request-log';
import { isOfConsole } from './gate';

/**
 * Tells the operator of the console why something failed, and what to do about it. The public API keeps this
 * in the log, which has the cause of a failure here too.
 */
export function toldErrors(mask: (text: string) => string): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const isTold = thrown instanceof BusyError || thrown instanceof CallerLeftError;
      if (!isOfConsole(ctx.path) || isTold || !(thrown instanceof ServiceError)) throw thrown;
      if (thrown instanceof RequestError && thrown.code in STATUS_OF_REQUEST_ERRORS) throw thrown;
      const [status, { code }] = [statusOf(thrown), thrown];
      if (status >= 500) logFailure(ctx.state.log, thrown, { code, status });
      throw new HttpError(status, code, mask(textOf(thrown)), thrown);
    }
  };
}

function statusOf(thrown: ServiceError): number {
  if (thrown instanceof RequestError || thrown instanceof ConfigurationError) return 400;
  return thrown instanceof ChainError ? 502 : 500;
}

function textOf({ message, remedy }: ServiceError): string {
  return remedy === undefined || message.includes(remedy)
    ? message
    : `${message.replace(/\.$/, '')}. ${remedy}`;
}
