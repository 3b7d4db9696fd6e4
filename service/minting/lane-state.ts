import type { Wallet } from 'ethers';
import type { TradeTrustTokenStandard } from '../../typechain-types';
import type { Network } from '../chain/networks';
import type { RpcClient } from '../chain/rpc-client';
import type { Logger } from '../logger';
import type { WakeableSleep } from '../wakeable-sleep';
import type { BroadcastWidth } from './broadcast-width';
import type { CurrentFees } from './current-fees';
import type { Journal } from '../journal/journal';
import type { LaneTiming } from './lane-timing';
import type { LearnedGas } from './learned-gas';
import { newestOf, type Doomed, type Flight, type Mint, type Parked } from './mint';

/** What the lane needs of the journal. */
export type LaneJournal = Pick<Journal, 'unfinished' | 'keepTransactions' | 'submitted' | 'mined' | 'failed'>;

/** The lane: what its parts share. A mint is in one of `waiting`, `ready`, `sending`, `inFlight`, `parked` and `doomed`, or being prepared. */
export interface Lane {
  readonly client: RpcClient;
  readonly network: Network;
  readonly wallet: Wallet;
  readonly registry: TradeTrustTokenStandard;
  readonly registryAddress: string;
  readonly journal: LaneJournal;
  /** Rejects while the node cannot be asked, and when it is of another chain. */
  readonly checkChain: () => Promise<void>;
  readonly logger: Logger;
  /** Of secrets, in what is kept of a failure. */
  readonly mask: (text: string) => string;
  readonly gas: LearnedGas;
  readonly fees: CurrentFees;
  readonly width: BroadcastWidth;
  readonly timing: LaneTiming;
  readonly mostReplacements: number;
  /** Ends when the lane stops. */
  readonly stopping: AbortSignal;
  /** Each part of the lane sleeps until there is something for it to do. */
  readonly sleeps: Record<'preparing' | 'sending' | 'watching', WakeableSleep>;
  /** What is not settled, by token id. */
  readonly mints: Map<string, Mint>;
  /** What became of the last ones, by token id: somebody may ask for one whose row was read before. */
  readonly settled: Map<string, Promise<string>>;
  /** Has no nonce. In the lane's order. */
  waiting: Mint[];
  /** Nonces that were given, and are not signed and kept yet. */
  readonly preparing: Set<number>;
  /** Signed and kept, and to be sent. In the order of nonces. */
  ready: Flight[];
  readonly sending: Set<Flight>;
  /** A node took it. By nonce. */
  readonly inFlight: Map<number, Flight>;
  readonly parked: Set<Parked>;
  readonly doomed: Set<Doomed>;
  /** Nonces that were given and taken back. */
  readonly freed: Set<number>;
  /** Nonces below are used, as far as any node ever said. */
  floor: number;
  /** Since when nodes say less. */
  lowSince: number | undefined;
  /** When the floor rose, by `performance.now()`. */
  progressAt: number;
  /** Whether what a node takes is mined when it says so. */
  minesAtOnce: boolean;
  /** The newest block when logs were last read. */
  headAt: number | undefined;
  /** When the node was last asked whether it still has what is to be mined next. */
  presenceAt: number;
  /** Since when there is no registry on the chain. */
  registryMissingSince: number | undefined;
  /** Counts how often all nonces were given anew. */
  epoch: number;
  /** What is being written to the journal, or settled. */
  readonly underWay: Set<Promise<void>>;
  /** The last note in the journal that nodes took mints. */
  noting: Promise<void>;
}

/** The highest nonce that the lane holds. */
export function highestHeld(lane: Lane): number | undefined {
  const held = [...lane.preparing, ...[...flightsOf(lane)].map(({ nonce }) => nonce)];
  return held.length === 0 ? undefined : held.reduce((most, nonce) => Math.max(most, nonce));
}

/** Where a nonce is held, if the lane holds it. */
export function holderOf(lane: Lane, nonce: number): 'nobody' | 'being sent' | 'in flight' {
  if (lane.inFlight.has(nonce)) return 'in flight';
  const isGiven = lane.preparing.has(nonce) || [...flightsOf(lane)].some((flight) => flight.nonce === nonce);
  return isGiven ? 'being sent' : 'nobody';
}

function* flightsOf(lane: Lane): Iterable<Flight> {
  yield* lane.ready;
  yield* lane.sending;
  yield* lane.inFlight.values();
}

/** Takes a node's count of the wallet's transactions into account: whether it is one that was passed before. */
export function noteCount(lane: Lane, count: number): void {
  if (count < lane.floor) {
    lane.lowSince ??= performance.now();
    return;
  }
  lane.lowSince = undefined;
}

/** Nonces below are used: a node says so. */
export function raiseFloor(lane: Lane, used: number): void {
  if (used <= lane.floor) return;
  lane.floor = used;
  lane.progressAt = performance.now();
  for (const nonce of lane.freed) if (nonce < used) lane.freed.delete(nonce);
}

/** How long nodes have said that fewer nonces are used than they said before. */
export function lowForMs(lane: Lane): number {
  return lane.lowSince === undefined ? 0 : performance.now() - lane.lowSince;
}

/** Puts a mint among those that have no nonce. */
export function putToWaiting(lane: Lane, mint: Mint): void {
  if (mint.isSettled) return;
  lane.waiting.push(mint);
  lane.waiting.sort((left, right) => left.order - right.order);
  lane.sleeps.preparing.wake();
}

/** Puts a flight among those that are to be sent. */
export function putToReady(lane: Lane, flight: Flight): void {
  if (flight.mint.isSettled) return;
  lane.ready.push(flight);
  lane.ready.sort((left, right) => left.nonce - right.nonce);
  lane.sleeps.sending.wake();
}

/** Takes a flight out of the lane; its mint is nowhere then. */
export function detach(lane: Lane, flight: Flight): void {
  lane.ready = lane.ready.filter((one) => one !== flight);
  lane.sending.delete(flight);
  if (lane.inFlight.get(flight.nonce) === flight) lane.inFlight.delete(flight.nonce);
}

/** Takes a nonce back that no transaction will use: it is the next that is given, as others may wait for it. */
export function free(lane: Lane, nonce: number): void {
  if (nonce < lane.floor) return;
  lane.freed.add(nonce);
  lane.sleeps.preparing.wake();
}

/** Signs a mint again with another nonce. */
export function signAnew(lane: Lane, flight: Flight, why: string): void {
  const { tokenId } = flight.mint.issuance;
  detach(lane, flight);
  lane.logger.warn(
    { tokenId, nonce: flight.nonce, txHash: newestOf(flight).hash },
    `mint signed again: ${why}`,
  );
  putToWaiting(lane, flight.mint);
}

/** Sends the same bytes again. */
export function sendAgain(lane: Lane, flight: Flight): void {
  detach(lane, flight);
  putToReady(lane, flight);
}

/** Sleeps, but not when the lane stops. */
export async function pause(lane: Lane, ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      lane.stopping.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    lane.stopping.addEventListener('abort', end);
    if (lane.stopping.aborted) end();
  });
}

/** Keeps in mind what `stop` waits for. It must not reject. */
export function track(lane: Lane, work: Promise<void>): void {
  lane.underWay.add(work);
  void work.finally(() => lane.underWay.delete(work));
}
