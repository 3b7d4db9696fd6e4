import { RequestError } from '../base/errors';
import { found, pointerOf, type Path } from '../base/json';

/**
 * The error for a wrong member of a subscription.
 *
 * @param problem with the remedy; the pointer is the subject of its first sentence.
 */
export function subscriptionError(path: Path, problem: string): RequestError {
  return new RequestError('SUBSCRIPTION_INVALID', `${pointerOf(path) || 'The body'} ${problem}`);
}

/** The members of an object. @throws RequestError SUBSCRIPTION_INVALID for any other value. */
export function membersOf(value: unknown, path: Path, remedy: string): [string, unknown][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value);
  throw subscriptionError(path, `must be an object, ${found(value)}. ${remedy}`);
}
