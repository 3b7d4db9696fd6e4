import { inspect } from 'node:util';
import { HardhatPluginError } from 'hardhat/plugins';
import { errorText } from '../cli/errors';
import { ServiceError } from '../service/base/errors';

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
