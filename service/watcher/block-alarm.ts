import type { RpcClient } from '../chain/rpc-client';

/** Tells when it is worth asking for new blocks. */
export interface BlockAlarm {
  /**
   * Resolves when the node told of a block since the last call, or when it is time to ask, or when the signal
   * aborts.
   */
  wait(signal: AbortSignal): Promise<void>;
  /**
   * Something happened on the registry and more may follow, or more is there than was read: the chain is
   * asked often again.
   */
  quicken(): void;
  stop(): void;
}

/**
 * How often the chain is asked, in milliseconds: `shortest` after something happened, from there growing to
 * `longest`.
 */
export interface Pauses {
  shortest: number;
  longest: number;
}

/** By how much each pause in which nothing happened is longer than the one before. */
const GROWTH = 1.5;

/**
 * On a WebSocket the node tells of new blocks (`newHeads`). That is a hint only, and may fail silently: the
 * chain is asked all the same. Asking costs: providers count calls by the day, and most of the time nothing
 * happens in a registry. So the pauses grow while nothing does.
 */
export function createBlockAlarm(client: RpcClient, { shortest, longest }: Pauses): BlockAlarm {
  let isRung = false;
  let end: (() => void) | undefined;
  let pauseMs = shortest;
  const ring = (): void => {
    isRung = true;
    end?.();
  };
  const unsubscribe = client.onNewHead?.(ring);
  return {
    async wait(signal) {
      if (!isRung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, pauseMs);
          signal.addEventListener('abort', ring, { once: true });
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        signal.removeEventListener('abort', ring);
      }
      pauseMs = Math.min(pauseMs * GROWTH, longest);
      end = undefined;
      isRung = false;
    },
    quicken: () => void (pauseMs = shortest),
    stop: () => unsubscribe?.(),
  };
}
