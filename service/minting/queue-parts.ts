import type { Wallet } from 'ethers';
import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';
import type { Logger } from '../base/logger';
import type { MintChain } from './mint-chain';
import type { MintRecorder } from './record-mints';
import type { MintStates } from './mint-states';
import type { Nonces, TransactionTerms } from './transaction-terms';

/** The parts of a queue, passed to each of its functions. Each part owns its own state; none is replaced. */
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
  /** Aborts when the queue stops. */
  readonly stopping: AbortSignal;
}

/** The queue's waiting times in milliseconds, and its limits. */
export interface MintTiming {
  /** Between two polls of the chain while a transaction is pending. */
  pollMs: number;
  /** How long a contradicting answer is attributed to a node that is behind. */
  patienceMs: number;
  /** Between two checks whether the node still has the transaction with the lowest nonce. */
  presenceMs: number;
  /** A transaction that is not mined within this time is replaced: five blocks, and a minute at least. */
  replaceAfterMs: number;
  /** How often a transaction is replaced although its fees are high enough. */
  mostReplacements: number;
  /** Before a mint that the wallet cannot pay for is tried again. */
  deferMs: number;
  /** How long a chain without the registry counts as being set up. */
  registryMs: number;
  /** Between two checks whether the blocks of final mints are still on the chain. */
  finalCheckMs: number;
}

/** A local node may mine ten blocks a second, and polling it is cheap. */
const LOCAL_POLL_MS = 50;

/** The times for a network. A local node is never behind; others may be behind by a few blocks. */
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

/** A larger number gains nothing: a node works on a few requests at a time. */
const WIDEST = 16;
/** How long transactions are sent one after the other once a node refused one for its order. */
const NARROW_FOR_MS = 60_000;

/**
 * How many transactions may be on their way to the node before it acknowledges the first. Most nodes accept
 * transactions in any order. A local node that mines at once refuses one that arrives too early. There, and
 * for a while after any node refuses one for that reason, transactions are sent one after the other.
 */
export class BroadcastWidth {
  #narrowUntil = -Infinity;

  /** @param minesAtOnce whether the node mines each transaction on arrival, as far as is known. */
  constructor(public minesAtOnce: boolean) {}

  now(): number {
    return this.minesAtOnce || performance.now() < this.#narrowUntil ? 1 : WIDEST;
  }

  /** The node refused a transaction because the one before it had not arrived. */
  refused(): void {
    this.#narrowUntil = performance.now() + NARROW_FOR_MS;
  }
}
