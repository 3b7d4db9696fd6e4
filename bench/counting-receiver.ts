import { join } from 'node:path';
import { startChild } from '../devnet/child-process';
import { PROJECT_ROOT } from '../service/base/project-root';
import { track } from '../test/helpers/resources';

/** The receiver in receiver.cjs. */
export interface CountingReceiver {
  url: string;
  /** Sets the count to 0. */
  reset(): Promise<void>;
  /** Resolves after this many requests. */
  received(count: number): Promise<void>;
  /** The block of each event that was sent to `/timed`, and the time of its arrival in epoch milliseconds. */
  arrivals(): Promise<[block: number, arrivedAt: number][]>;
  stop(): Promise<void>;
}

/** Starts the receiver on a free port. */
export async function startCountingReceiver(): Promise<CountingReceiver> {
  const child = startChild('receiver', join(PROJECT_ROOT, 'bench/receiver.cjs'), [], {});
  const untrack = track('the receiver');
  const [, url = ''] = await child.lineMatching(/listening on (\S+)/);
  const call = async (method: string, path: string): Promise<void> => {
    await (await fetch(`${url}${path}`, { method })).arrayBuffer();
  };
  return {
    url,
    reset: () => call('DELETE', '/'),
    received: (count) => call('GET', `/${count}`),
    arrivals: async () => (await fetch(`${url}/arrivals`)).json() as Promise<[number, number][]>,
    async stop() {
      await child.stop();
      untrack();
    },
  };
}
