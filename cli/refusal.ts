import { ServiceError } from '../service/base/errors';

/**
 * What a command of the registry's admin does not do: the registry would refuse it, or it needs more from the
 * user. Nothing was sent. Exit code 1.
 */
export class Refusal extends ServiceError {}
