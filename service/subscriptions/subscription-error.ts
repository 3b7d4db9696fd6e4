import { RequestError } from '../base/errors';
import { found } from '../base/found';
import { pointerStep } from '../base/json-pointer';

/** Where a value is in the body: names of members, and indexes. */
export type Path = readonly PropertyKey[];

/** Characters shown of a name in a pointer. It may be as long as the body. */
const LONGEST_SHOWN = 256;

/**
 * The error for a wrong member of a subscription.
 *
 * @param problem with the remedy; the pointer is the subject of its first sentence.
 */
export function subscriptionError(path: Path, problem: string): RequestError {
  const pointer = path.map((step) => pointerStep(shown(String(step)))).join('');
  return new RequestError('SUBSCRIPTION_INVALID', `${pointer || 'The body'} ${problem}`);
}

/** The members of an object. @throws RequestError SUBSCRIPTION_INVALID for any other value. */
export function membersOf(value: unknown, path: Path, remedy: string): [string, unknown][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value);
  throw subscriptionError(path, `must be an object, ${found(value)}. ${remedy}`);
}

function shown(name: string): string {
  return name.length > LONGEST_SHOWN ? `${name.slice(0, LONGEST_SHOWN)}…` : name;
}
