import type { Middleware } from 'koa';
import {
  BusyError,
  CallerLeftError,
  ChainError,
  ConfigurationError,
  RequestError,
  ServiceError,
} from '../../base/errors';
import { HttpError, STATUS_OF_REQUEST_ERRORS } from '../middleware/errors';
import { isOfConsole } from './gate';

/**
 * Tells the operator of the console why something failed, and what to do about it. The public API keeps this
 * in the log.
 */
export function toldErrors(mask: (text: string) => string): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const isTold = thrown instanceof BusyError || thrown instanceof CallerLeftError;
      if (!isOfConsole(ctx.path) || isTold || !(thrown instanceof ServiceError)) throw thrown;
      if (thrown instanceof RequestError && thrown.code in STATUS_OF_REQUEST_ERRORS) throw thrown;
      throw new HttpError(statusOf(thrown), thrown.code, mask(textOf(thrown)));
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
