import { ConfigurationError, messageOf, ServiceError } from '../service/base/errors';
import { envFileOf } from '../service/config/config';
import { withCommandsFor } from '../service/config/tenant';

/**
 * A command is not carried out: the registry would refuse it, or the user must confirm or add something.
 * Nothing was sent or removed. Exit code 1.
 */
export class Refusal extends ServiceError {}

/** The error for an argument that cannot be used: the problem, and what to do about it. */
export function invalid(problem: string, remedy?: string): ConfigurationError {
  if (remedy === undefined) return new ConfigurationError('ARGUMENT_INVALID', problem);
  return new ConfigurationError('ARGUMENT_INVALID', `${problem} ${remedy}`, { remedy });
}

/**
 * Formats an error for a user: its message, its code, and its remedy unless the message contains it. Commands
 * in the text get the user's ENV_FILE.
 */
export function errorText(thrown: unknown): string {
  if (!(thrown instanceof ServiceError)) {
    return `${messageOf(thrown)} [UNEXPECTED_ERROR]\nAdd --stack-traces to see where it comes from.`;
  }
  const { message, code, remedy } = thrown;
  const text = `${message} [${code}]`;
  return withCommandsFor(envFileOf(), remedy && !message.includes(remedy) ? `${text}\n${remedy}` : text);
}
