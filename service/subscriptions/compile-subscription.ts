import { compileSelection, type EventPredicate } from './filters';
import type { Subscription } from './subscription';

/** The rules of a subscription for events. */
export interface CompiledSubscription {
  readonly wants: EventPredicate;
  /** Whether the subscriber gets retractions of events that a reorganisation removed. */
  readonly hasRetractions: boolean;
}

/** Compiles a stored definition: a realised subscription as JSON. */
export function compileSubscription(definition: string): CompiledSubscription {
  const subscription = JSON.parse(definition) as Subscription;
  const { startFrom, retractions } = subscription.config;
  const selects = compileSelection(subscription);
  const wants: EventPredicate =
    typeof startFrom === 'number'
      ? (event) => event.data.blockNumber >= startFrom && selects(event)
      : selects;
  return { wants, hasRetractions: retractions };
}
