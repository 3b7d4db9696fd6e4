import type { Time } from '../base/time';
import { createFinalBlockReading } from '../chain/finality';
import { pollingMsOf, type Network } from '../chain/networks';
import type { MintQueueOptions, MintTiming } from './mint';
import { MintChain } from './mint-chain';
import { MintStates } from './mint-states';
import { MintRecorder } from './record-mints';
import { Nonces, TransactionTerms } from './transaction-terms';

/** The parts of a queue, passed to each of its functions. Each part owns its own state; none is replaced. */
export type QueueParts = Readonly<ReturnType<typeof createQueueParts>>;

/** @param stopping aborts when the queue stops. */
export function createQueueParts(options: MintQueueOptions, stopping: AbortSignal) {
  const { client, network, registryAddress, confirmations, time } = options;
  const nonces = new Nonces(time);
  const states = new MintStates(nonces, time);
  return {
    ...options,
    stopping,
    nonces,
    states,
    chain: new MintChain(client, registryAddress, createFinalBlockReading(client, network, confirmations)),
    recorder: new MintRecorder({ ...options, states, stopping }),
    terms: new TransactionTerms(options),
    width: new BroadcastWidth(network.local, time),
    timing: timingFor(network),
  };
}

/** A local node may mine ten blocks a second, and polling it is cheap. */
const LOCAL_POLL_MS = 50;

/** The times for a network. A local node is never behind; others may be behind by a few blocks. */
function timingFor(network: Network): MintTiming {
  const { blockTimeMs, local } = network;
  return {
    pollMs: local ? LOCAL_POLL_MS : pollingMsOf(network),
    patienceMs: local ? 1_000 : Math.max(3 * blockTimeMs, 15_000),
    presenceMs: local ? 1_000 : Math.max(2 * blockTimeMs, 10_000),
    replaceAfterMs: Math.max(5 * blockTimeMs, 60_000),
    mostReplacements: 5,
    deferMs: 15_000,
    registryMs: 15_000,
    finalCheckMs: local ? 5_000 : 60_000,
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
  constructor(
    public minesAtOnce: boolean,
    private readonly time: Time,
  ) {}

  now(): number {
    return this.minesAtOnce || this.time.elapsed() < this.#narrowUntil ? 1 : WIDEST;
  }

  /** The node refused a transaction because the one before it had not arrived. */
  refused(): void {
    this.#narrowUntil = this.time.elapsed() + NARROW_FOR_MS;
  }
}
