import { ConfigurationError } from '../../service/base/errors';

/**
 * An existing key stands in the way, and only the user can decide. `problem` ends with the way back, without
 * its full stop; the way forward is the same for every key.
 */
export function keyExists(problem: string): ConfigurationError {
  return new ConfigurationError('KEY_EXISTS', `${problem}, or make a new key with --force.`);
}
