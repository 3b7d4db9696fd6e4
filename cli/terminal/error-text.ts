import { envFileOf } from '../../service/config/config';
import { messageOf, ServiceError } from '../../service/base/errors';
import { withCommandsFor } from '../../service/config/tenant';

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
