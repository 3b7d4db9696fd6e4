import type { JsonObject } from '../issuance/credential';
import type { DeliveryState } from '../outbox/deliveries';
import type { Sessions } from './sessions';
import type {
  DeliveryList,
  EventDetails,
  Facts,
  IssuingProgress,
  Overview,
  TokenView,
  Validation,
  VerifyView,
} from './views';

/** The deliveries of a list. Undefined: all. */
export interface DeliveriesAsked {
  state: Exclude<DeliveryState, 'orphaned'> | undefined;
  subscription: string | undefined;
  limit: number;
}

/**
 * The answers to what a page asks for. Undefined: there is no such thing. `left` aborts when the caller has
 * gone away: what waits for its turn is given up, and a check is ended.
 */
export interface Answers {
  /** @param bytes JSON. The caller must not use them afterwards. */
  validate(this: void, bytes: Uint8Array<ArrayBuffer>): Promise<Validation>;
  /** @param tokenId 64 lower-case hexadecimal digits. */
  progress(this: void, tokenId: string): Promise<IssuingProgress | undefined>;
  token(this: void, question: JsonObject, left: AbortSignal): Promise<TokenView>;
  deliveries(this: void, wanted: DeliveriesAsked): Promise<DeliveryList>;
  event(this: void, eventId: string): Promise<EventDetails | undefined>;
  /** @param bytes a credential as JSON. The caller must not use them afterwards. */
  verify(this: void, bytes: Uint8Array<ArrayBuffer>, left: AbortSignal): Promise<VerifyView>;
}

/** The parts of the console that its paths need. They know nothing of HTTP. */
export interface Console extends Answers {
  readonly sessions: Sessions;
  facts(this: void): Promise<Facts>;
  overview(this: void): Promise<Overview>;
}
