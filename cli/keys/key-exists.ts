import { ConfigurationError } from '../../service/base/errors';

/**
 * The error for an existing key that only the user may decide to replace. `problem` ends with the way to keep
 * the key, without a full stop; the way to replace it is the same for every key and is added here.
 */
export function keyExists(problem: string): ConfigurationError {
  return new ConfigurationError('KEY_EXISTS', `${problem}, or make a new key with --force.`);
}
