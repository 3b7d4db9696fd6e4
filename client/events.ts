import {
  isOfChain,
  type ChainEvent,
  type ChainEventSuffix,
  type Retraction,
  type ServiceEvent,
  type TokenEvent,
} from './event-schemas';
import { afterEvent, NOBODY, type TokenState } from './token-moves';

// Subscribers need this: the events with their types, and the fold of those of a token, or of a registry,
// to its state. The fold takes them as they arrive from a subscription with retractions: each id counts once,
// and a retracted event does not count.

export { CHAIN_EVENT_TYPES, EVENT_SCHEMAS, isKnown, isOfChain, OPERATIONAL_TYPES } from './event-schemas';
export type {
  ChainEvent,
  ChainEventPayload,
  ChainEventSuffix,
  OperationalEvent,
  OperationSuffix,
  RegistryEvent,
  Retraction,
  ServiceEvent,
  TestEvent,
  TokenEvent,
} from './event-schemas';
export type { TokenState } from './token-moves';

const NOT_MINTED: TokenState = {
  state: 'not minted',
  escrow: null,
  beneficiary: null,
  holder: null,
  nominee: null,
};

/**
 * A token or a registry as far as it is known: its chain events and their retractions, in order of arrival.
 */
export type History = readonly (ChainEvent | Retraction)[];

/** The events of the history that hold: each id once, without those that were retracted. */
export function standing(history: History): ChainEvent[] {
  const retracted = new Set(history.flatMap((event) => (isRetraction(event) ? event.data.retracts : [])));
  const events = new Map<string, ChainEvent>();
  for (const event of history)
    if (!isRetraction(event) && !retracted.has(event.id) && !events.has(event.id))
      events.set(event.id, event);
  return [...events.values()];
}

/** The state of a token after its history. */
export function tokenStateOf(history: History): TokenState {
  return standing(history).filter(isOfToken).reduce(after, NOT_MINTED);
}

/** Whether a registry is paused after its history. */
export function isPausedAfter(history: History): boolean {
  return standing(history).at(-1)?.type === 'com.service.etr.registry_paused';
}

/**
 * The name of the history that an event belongs to. Events of a registry itself have the subject 0 too, and
 * no `tokenIdHex`. Undefined for test events and operational events, which belong to none.
 */
export function historyOf(event: ServiceEvent): string | undefined {
  if (!isOfChain(event)) return undefined;
  return 'tokenIdHex' in event.data ? `${event.source}:${event.data.tokenId}` : event.source;
}

function isRetraction(event: ChainEvent | Retraction): event is Retraction {
  return event.type === 'com.service.etr.retracted';
}

function isOfToken(event: ChainEvent): event is TokenEvent {
  return 'tokenIdHex' in event.data;
}

function after(token: TokenState, { type, data }: TokenEvent): TokenState {
  const { payload } = data;
  if (type === 'com.service.etr.escrow_created') return { ...token, escrow: data.payload.escrowAddress };
  const suffix = type.slice('com.service.etr.'.length) as ChainEventSuffix;
  return afterEvent(token, { type: suffix, payload }, (address) => (address === NOBODY ? null : address));
}
