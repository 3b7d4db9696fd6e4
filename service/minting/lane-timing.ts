import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';

/** How long the lane waits for what, in milliseconds. */
export interface LaneTiming {
  /** Between two looks at the chain while something is in flight. */
  pollMs: number;
  /** How long an answer that contradicts what is known is taken for one of a node that is behind. */
  patienceMs: number;
  /** Between two looks whether the node still has what waits longest. */
  presenceMs: number;
  /** After which a transaction that is not mined is replaced. */
  replaceAfterMs: number;
  /** Before a mint that the wallet cannot pay for is tried again. */
  fundsMs: number;
  /** How long a chain without the registry is taken for one that is being set up. */
  registryMs: number;
}

/** A node of this machine may mine ten blocks a second, and minds no questions. */
const LOCAL_POLL_MS = 50;

/** What the times depend on. `timing`: what tests shorten. */
interface TimingOptions {
  client: RpcClient;
  network: Network;
  replaceAfterMs?: number;
  timing?: Partial<LaneTiming>;
}

/** A node of this machine is never behind; others are by a few blocks. */
export function timingOf({ client, network, replaceAfterMs, timing }: TimingOptions): LaneTiming {
  const { blockTimeMs, local } = network;
  return {
    pollMs: local ? LOCAL_POLL_MS : client.pollingInterval,
    patienceMs: local ? 1_000 : Math.max(3 * blockTimeMs, 15_000),
    presenceMs: local ? 1_000 : Math.max(2 * blockTimeMs, 10_000),
    replaceAfterMs: replaceAfterMs ?? Math.max(5 * blockTimeMs, 60_000),
    fundsMs: 15_000,
    registryMs: 15_000,
    ...timing,
  };
}
