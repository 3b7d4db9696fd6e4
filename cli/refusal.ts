import { ServiceError } from '../service/base/errors';

/**
 * A command is not carried out: the registry would refuse it, or the user must confirm or add something.
 * Nothing was sent or removed. Exit code 1.
 */
export class Refusal extends ServiceError {}
