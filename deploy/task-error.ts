import { inspect } from 'node:util';
import { HardhatPluginError } from 'hardhat/plugins';
import { errorText } from '../cli/terminal/error-text';
import { ServiceError } from '../service/base/errors';

/** What Hardhat prints in front of the message: "Error in plugin …". */
const ORIGIN = 'transferable-document-service';

/**
 * Runs a task's action so that an error of ours ends as its message, its code and its remedy, without a
 * stack, unless the user asked for stacks (`--show-stack-traces`).
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
 * The same error in the form that Hardhat prints without calling it unexpected; anything that is not ours
 * stays as it is. Hardhat also prints the stack of every error when it believes to be on a CI server: that
 * part is left empty.
 */
export function readable(thrown: unknown, showStackTraces = false): unknown {
  if (!(thrown instanceof ServiceError)) return thrown;
  const error = new HardhatPluginError(ORIGIN, errorText(thrown), thrown);
  if (!showStackTraces) Object.defineProperty(error, inspect.custom, { value: () => '' });
  return error;
}
