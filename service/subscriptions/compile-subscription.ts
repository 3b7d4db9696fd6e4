import type { CloudEvent } from '../outbox/cloud-event';

/** The rules of a subscription. */
export interface CompiledSubscription {
  wants(this: void, event: CloudEvent): boolean;
  /** Whether the subscriber is told of events that a reorganisation took away. */
  hasRetractions: boolean;
}

/** Compiles the stored definition of a subscription. */
export function compileSubscription(_definition: string): CompiledSubscription {
  return { wants: () => true, hasRetractions: false };
}
