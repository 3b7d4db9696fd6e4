import type { DeliveryState as State } from '../../service/outbox/deliveries';
import { StateMark, type Shape, type Tone } from '../parts/state-mark';

/** The service tries failed deliveries again. Dead letters wait for the operator. */
const MARKS: Record<State, { tone: Tone; shape: Shape; word?: string }> = {
  waiting: { tone: 'plain', shape: 'clock' },
  failed: { tone: 'wait', shape: 'warning' },
  dead: { tone: 'bad', shape: 'cross', word: 'dead letter' },
  delivered: { tone: 'good', shape: 'check' },
  orphaned: { tone: 'plain', shape: 'dash' },
};

/** The state of a delivery. */
export function DeliveryState({ state }: { state: State }) {
  return <StateMark word={state} {...MARKS[state]} />;
}
