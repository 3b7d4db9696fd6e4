import type { ChainEvent, Retraction, ServiceEvent, TokenEvent } from './event-schemas';

/**
 * Folds the events of a token, or of a registry, to its state. It takes them as they arrive from a
 * subscription with retractions: each id counts once, and a retracted event does not count.
 */

/** The state of a token. Addresses are in lower case; null stands for nobody. */
export interface TokenState {
  /**
   * - `in escrow`: the beneficiary and the holder can act.
   * - `returned to issuer`: surrendered to the registry, whose issuer restores or shreds it.
   * - `shredded`: taken out of circulation for good.
   */
  state: 'not minted' | 'in escrow' | 'returned to issuer' | 'shredded';
  escrow: string | null;
  beneficiary: string | null;
  holder: string | null;
  nominee: string | null;
}

const NOT_MINTED: TokenState = {
  state: 'not minted',
  escrow: null,
  beneficiary: null,
  holder: null,
  nominee: null,
};
const NOBODY = `0x${'00'.repeat(20)}`;

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
 * no `tokenIdHex`. Undefined for a test event, which belongs to none.
 */
export function historyOf(event: ServiceEvent): string | undefined {
  if (event.type === 'com.service.etr.test') return undefined;
  return 'tokenIdHex' in event.data ? `${event.source}:${event.data.tokenId}` : event.source;
}

function isRetraction(event: ChainEvent | Retraction): event is Retraction {
  return event.type === 'com.service.etr.retracted';
}

function isOfToken(event: ChainEvent): event is TokenEvent {
  return 'tokenIdHex' in event.data;
}

/** The state after an event. Events that repeat the content of others change nothing. */
function after(token: TokenState, { type, data }: TokenEvent): TokenState {
  switch (type) {
    case 'com.service.etr.escrow_created':
      return { ...token, escrow: data.payload.escrowAddress };
    case 'com.service.etr.minted':
    case 'com.service.etr.restored':
      return { ...token, state: 'in escrow' };
    case 'com.service.etr.surrendered':
      return { ...token, state: 'returned to issuer' };
    case 'com.service.etr.burned':
      return { ...token, state: 'shredded' };
    case 'com.service.etr.beneficiary_transfer':
      return { ...token, beneficiary: someone(data.payload.toBeneficiary) };
    case 'com.service.etr.holder_transfer':
      return { ...token, holder: someone(data.payload.toHolder) };
    case 'com.service.etr.nomination':
      return { ...token, nominee: someone(data.payload.nominee) };
    default:
      return token;
  }
}

function someone(address: string): string | null {
  return address === NOBODY ? null : address;
}
