import { inspect } from 'node:util';
import { HardhatPluginError } from 'hardhat/plugins';
import { errorText } from '../cli/errors';
import { messageOf, ServiceError } from '../service/base/errors';

/** Hardhat prints it in front of the message: "Error in plugin …". */
const ORIGIN = 'transferable-document-service';

/**
 * Runs a task's action so that an error of ours prints its message, code and remedy, and a stack only with
 * `--show-stack-traces`.
 */
export async function withReadableErrors<T>(
  { showStackTraces }: { showStackTraces: boolean },
  action: () => T | Promise<T>,
): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw readable(thrown, showStackTraces);
  }
}

/**
 * Converts an error of ours into the form that Hardhat does not call unexpected. Other errors are returned
 * unchanged. Hardhat also prints the stack of every error if it detects a CI server: that output is made
 * empty.
 */
export function readable(thrown: unknown, showStackTraces = false): unknown {
  if (!(thrown instanceof ServiceError)) return thrown;
  const error = new HardhatPluginError(ORIGIN, errorText(thrown), thrown);
  if (!showStackTraces) Object.defineProperty(error, inspect.custom, { value: () => '' });
  return error;
}

/**
 * Copies an error and masks the secrets in it and in its causes. Hardhat prints causes with stack traces, and
 * those of libraries contain requests with the URL and its key.
 *
 * @param code the code for errors that are not our own.
 */
export function maskedError(thrown: unknown, mask: (text: string) => string, code: string): ServiceError {
  const cause = maskedCause(thrown instanceof ServiceError ? thrown.cause : thrown, mask);
  if (!(thrown instanceof ServiceError)) {
    return new ServiceError(code, mask(messageOf(thrown)).replace(/\s*\n\s*/g, ' '), { cause });
  }
  const { remedy, retryable } = thrown;
  const options = { cause, retryable, ...(remedy !== undefined && { remedy: mask(remedy) }) };
  return new ServiceError(thrown.code, mask(thrown.message), options);
}

/** Keeps only the message and the stack. */
function maskedCause(cause: unknown, mask: (text: string) => string): Error | undefined {
  if (cause === undefined) return undefined;
  const masked = new Error(mask(messageOf(cause)));
  masked.stack = mask((cause instanceof Error && cause.stack) || masked.message);
  return masked;
}
