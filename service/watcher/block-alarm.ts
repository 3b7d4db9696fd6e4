import type { RpcClient } from '../chain/rpc-client';

/** Tells when it is worth asking for new blocks. */
export interface BlockAlarm {
  /** Resolves when the node told of a block since the last call, or after the interval, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>;
  stop(): void;
}

/**
 * On a WebSocket the node tells of new blocks (`newHeads`). That is a hint only, and may fail silently: the chain is asked every
 * `intervalMs` all the same.
 */
export function createBlockAlarm(client: RpcClient, intervalMs: number): BlockAlarm {
  let isRung = false;
  let end: (() => void) | undefined;
  const ring = (): void => {
    isRung = true;
    end?.();
  };
  const unsubscribe = client.onNewHead?.(ring);
  return {
    async wait(signal) {
      if (!isRung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, intervalMs);
          signal.addEventListener('abort', ring, { once: true });
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        signal.removeEventListener('abort', ring);
      }
      end = undefined;
      isRung = false;
    },
    stop: () => unsubscribe?.(),
  };
}
