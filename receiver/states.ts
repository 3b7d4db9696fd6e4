import { EVENT_SCHEMAS, type ChainEvent, type Retraction, type ServiceEvent } from './event-schemas';
import { isUnknown, type Received } from './received-event';
import { historyOf, isPausedAfter, tokenStateOf, type TokenState } from './token-state';

/** The state of a token, or of a registry itself. */
export type ShownState =
  ({ source: string; tokenId: string } & TokenState) | { source: string; isPaused: boolean };

/**
 * The states of all tokens and registries. It keeps their histories in memory; your own receiver would keep
 * them in its database.
 */
export class States {
  readonly #histories = new Map<string, (ChainEvent | Retraction)[]>();

  /** Adds a delivery that was stored; returns the state that follows. Undefined if it changes none. */
  add(received: Received): ShownState | undefined {
    if (isUnknown(received) || !isKnown(received) || received.type === 'com.service.etr.test')
      return undefined;
    const name = historyOf(received) ?? '';
    const history = this.#histories.get(name) ?? [];
    this.#histories.set(name, history);
    history.push(received);
    return shown(history);
  }

  /** All states. */
  all(): ShownState[] {
    return [...this.#histories.values()].flatMap((history) => shown(history) ?? []);
  }
}

/** The file may have events of types that another version of the receiver knew. */
function isKnown(received: { type: string }): received is ServiceEvent {
  return Object.hasOwn(EVENT_SCHEMAS, received.type);
}

function shown(history: readonly (ChainEvent | Retraction)[]): ShownState | undefined {
  const [first] = history;
  if (first === undefined) return undefined;
  const { source, data } = first;
  if (!('tokenIdHex' in data)) return { source, isPaused: isPausedAfter(history) };
  return { source, tokenId: data.tokenId, ...tokenStateOf(history) };
}
