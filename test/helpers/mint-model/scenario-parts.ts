import type { FaultPlan } from './faults';
import type { History } from './history';
import type { UnsteadyChain } from './unsteady-chain';
import type { VirtualTime } from './virtual-time';

/** What the parts of a scenario share. */
export interface ScenarioParts {
  time: VirtualTime;
  faults: FaultPlan;
  chain: UnsteadyChain;
  history: History;
}

/**
 * A process of the service, which may be killed before and after each of its steps: statements of the
 * journal, and transactions that are sent.
 */
export interface Mortal {
  isDead(): boolean;
  step(moment: 'before' | 'after'): void;
}
