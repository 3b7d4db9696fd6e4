import { ServiceError } from '../../service/errors';

/**
 * What a command of the registry's owner does not do: the registry would refuse it, or it needs more from the
 * user. Nothing was sent. Exit code 1.
 */
export class Refusal extends ServiceError {}
