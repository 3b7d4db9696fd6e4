import { setTimeout as sleep } from 'node:timers/promises';
import type { Wallet } from 'ethers';
import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';
import type { Logger } from '../base/logger';
import type { MintChain } from './mint-chain';
import type { MintRecorder } from './record-mints';
import type { MintStates } from './mint-states';
import type { Nonces } from './nonces';
import type { BroadcastWidth } from './send-mints';
import type { TransactionTerms } from './transaction-terms';

/** What the parts of the queue work with. Each of them owns its own state; nothing here is replaced. */
export interface QueueParts {
  readonly client: RpcClient;
  readonly network: Network;
  readonly wallet: Wallet;
  readonly states: MintStates;
  readonly nonces: Nonces;
  readonly chain: MintChain;
  readonly recorder: MintRecorder;
  readonly terms: TransactionTerms;
  readonly width: BroadcastWidth;
  readonly timing: MintTiming;
  readonly logger: Logger;
  /** Ends when the queue stops. */
  readonly stopping: AbortSignal;
}

/** How long the queue waits for what, in milliseconds, and how often. */
export interface MintTiming {
  /** Between two looks at the chain while something is pending. */
  pollMs: number;
  /** How long an answer that contradicts what is known is taken for one of a node that is behind. */
  patienceMs: number;
  /** Between two looks whether the node still has what waits longest. */
  presenceMs: number;
  /** After which a transaction that is not mined is replaced: some blocks, and a minute at least. */
  replaceAfterMs: number;
  /** How often a transaction is replaced that offers enough. */
  mostReplacements: number;
  /** Before a mint that the wallet cannot pay for, or that may yet fail, is tried again. */
  deferMs: number;
  /** How long a chain without the registry is taken for one that is being set up. */
  registryMs: number;
  /** Between two looks whether the blocks of final mints are still on the chain. */
  finalCheckMs: number;
}

/** A node of this machine may mine ten blocks a second, and minds no questions. */
const LOCAL_POLL_MS = 50;

/** The times for a network. A node of this machine is never behind; others are by a few blocks. */
export function timingFor(
  client: RpcClient,
  { blockTimeMs, local }: Network,
  shortened: Partial<MintTiming> = {},
): MintTiming {
  return {
    pollMs: local ? LOCAL_POLL_MS : client.pollingInterval,
    patienceMs: local ? 1_000 : Math.max(3 * blockTimeMs, 15_000),
    presenceMs: local ? 1_000 : Math.max(2 * blockTimeMs, 10_000),
    replaceAfterMs: Math.max(5 * blockTimeMs, 60_000),
    mostReplacements: 5,
    deferMs: 15_000,
    registryMs: 15_000,
    finalCheckMs: local ? 5_000 : 60_000,
    ...shortened,
  };
}

/** Sleeps, but not when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
