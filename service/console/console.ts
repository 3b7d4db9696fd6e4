import type { Answers } from '../answers/answers';
import type { CheckingPool } from '../answers/checking-pool';
import type { Sessions } from './sessions';
import type { Facts, Overview } from './views';

/** The parts of the console that its own paths need. They know nothing of HTTP. */
export interface Console extends Pick<CheckingPool, 'validate'>, Pick<Answers, 'progress'> {
  readonly sessions: Sessions;
  facts(this: void): Promise<Facts>;
  overview(this: void): Promise<Overview>;
}
