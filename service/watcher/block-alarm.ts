import { createWakeableSleep } from '../base/waiting';
import type { RpcClient } from '../chain/rpc-client';
import type { Pauses } from '../config/followed-registries';

/** Decides when to ask the chain for new blocks. */
export interface BlockAlarm {
  /**
   * Resolves when the node has reported a block since the last call, when the pause is over, or when the
   * signal aborts.
   */
  wait(signal: AbortSignal): Promise<void>;
  /** Shortens the pause again: the registry had an event and more may follow, or there is more to read. */
  quicken(): void;
  /** Ends the pause, or the next one. */
  wake(this: void): void;
  stop(): void;
}

/** Factor by which each pause without an event is longer than the one before. */
const GROWTH = 1.5;

/**
 * Creates an alarm. Over a WebSocket the node reports new blocks (`newHeads`), but subscriptions can fail
 * silently, so the chain is polled as well. Providers limit calls per day and most registries are idle most
 * of the time: the pause grows as long as nothing happens.
 */
export function createBlockAlarm(client: RpcClient, { shortest, longest }: Pauses): BlockAlarm {
  const sleeper = createWakeableSleep();
  let pauseMs = shortest;
  const unsubscribe = client.onNewHead?.(sleeper.wake);
  return {
    async wait(signal) {
      signal.addEventListener('abort', sleeper.wake);
      if (!signal.aborted) await sleeper.sleep(pauseMs);
      signal.removeEventListener('abort', sleeper.wake);
      sleeper.reset();
      pauseMs = Math.min(pauseMs * GROWTH, longest);
    },
    quicken: () => void (pauseMs = shortest),
    wake: sleeper.wake,
    stop: () => unsubscribe?.(),
  };
}
