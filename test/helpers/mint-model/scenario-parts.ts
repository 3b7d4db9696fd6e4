import type { FaultPlan } from './faults';
import type { History } from './history';
import type { UnsteadyChain } from './unsteady-chain';
import type { VirtualTime } from './virtual-time';

/** The objects that all parts of a scenario share. */
export interface ScenarioParts {
  time: VirtualTime;
  faults: FaultPlan;
  chain: UnsteadyChain;
  history: History;
}

/**
 * A process of the service. It may be killed before or after each of its steps: statements of the journal and
 * sent transactions.
 */
export interface Mortal {
  isDead(): boolean;
  step(moment: 'before' | 'after'): void;
}
