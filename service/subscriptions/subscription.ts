import type { Selection } from '../events/select-events';

/**
 * Terms of subscriptions, from the CloudEvents Subscriptions API (version 0.1-wip) where it has one:
 *
 * - subscription: the request of a subscriber to get events; sink: the URL that they are sent to.
 * - filter: a condition on an event; dialect: the kind of a filter, which is the name of its only member.
 * - attribute: a member of a CloudEvent beside `data`, such as `type`.
 * - party: an account or a contract whose address is in the payload of an event.
 * - realised: with a value for every member that has a default.
 */

/** `gone`: the sink has answered 410. Only the service sets it. */
export type SubscriptionState = 'active' | 'paused' | 'gone';

/** Options of the delivery, in milliseconds where they are times. docs/subscriptions.md describes them. */
export interface SubscriptionConfig {
  /** The first events: those after the request, all of them, or those from this block on. */
  readonly startFrom: 'now' | 'beginning' | number;
  readonly state: SubscriptionState;
  readonly timeoutMs: number;
  readonly maxConcurrentDeliveries: number;
  readonly retry: {
    readonly initialDelayMs: number;
    readonly maxDelayMs: number;
    readonly giveUpAfterMs: number;
  };
  readonly contentType: 'application/json' | 'application/cloudevents+json';
  readonly standardWebhooks: boolean;
  readonly retractions: boolean;
}

/** Header values by name, in lower case. The values are secrets. */
export type Headers = Readonly<Record<string, string>>;

/** A realised subscription. */
export interface Subscription extends Selection {
  /** A UUID, or `default`. */
  readonly id: string;
  readonly sink: string;
  readonly protocol: 'HTTP';
  readonly protocolsettings?: { readonly headers?: Headers; readonly method?: 'POST' };
  readonly config: SubscriptionConfig;
}
