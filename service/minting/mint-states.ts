import { type Time, createWakeableSleep, type WakeableSleep } from '../base/time';
import type { Issuance, MinedMint, Unfinished } from '../journal/issuance';
import { lastPending, Mint, newOutcome, readSignedMint, type PendingTransaction } from './mint';
import type { Nonces } from './transaction-terms';

/** The state of a mint. */
export type MintState =
  'preparing' | 'waiting' | 'deferred' | 'ready' | 'sending' | 'pending' | 'mined' | 'settled';

const MOST_REMEMBERED = 10_000;
/** `mined`: in another block. */
const AFTER_MINED: readonly MintState[] = ['mined', 'preparing', 'settled'];

/**
 * All mints of the queue. This class alone changes their states.
 *
 * | from      | what happens                                              | to        |
 * | --------- | --------------------------------------------------------- | --------- |
 * | preparing | it was just added, or could not be prepared now           | waiting   |
 * | preparing | it was signed, and its transaction is in the journal      | ready     |
 * | preparing | it cannot be made now: no funds, no registry, a pause     | deferred  |
 * | preparing | it turns out to be on the chain                           | mined     |
 * | preparing | it cannot be made at all                                  | settled   |
 * | waiting   | its turn has come                                         | preparing |
 * | deferred  | its time has come                                         | waiting   |
 * | deferred  | nothing that was sent can make it any more                | settled   |
 * | deferred  | nodes refused it, and nobody has taken its nonce          | ready     |
 * | deferred  | it turns out to be on the chain                           | mined     |
 * | ready     | its bytes are given to a node                             | sending   |
 * | ready     | its nonce is another's, or a lower one is free            | waiting   |
 * | ready     | nodes refuse it: its nonce goes to another mint           | deferred  |
 * | ready     | it was mined while it waited to be sent again             | mined     |
 * | sending   | a node has it, or may have it                             | pending   |
 * | sending   | a node refused it, which may pass                         | ready     |
 * | sending   | its nonce is used at depth, and there is no token         | waiting   |
 * | sending   | it was mined before the node answered                     | mined     |
 * | pending   | nodes lost it, or never acknowledged it                   | ready     |
 * | pending   | its nonce is used at depth, or a lower one is free        | waiting   |
 * | pending   | it was mined                                              | mined     |
 * | pending   | it reverted, which is certain at depth                    | settled   |
 * | pending   | it reverted, and another transaction may still make it    | deferred  |
 * | mined     | its block is final                                       | settled   |
 * | mined     | its block is gone: it is placed anew                      | preparing |
 *
 * After a deeper reorganisation, a settled mint is added anew. Each nonce is held by at most one mint, which
 * is ready, sending or pending.
 */
export class MintStates {
  /** Each loop of the queue sleeps until it has work. */
  readonly sleeps: Record<'preparing' | 'sending' | 'following', WakeableSleep>;
  readonly #mints = new Map<string, Mint>();
  readonly #states = new WeakMap<Mint, MintState>();
  #order = 0;
  /** In the queue's order. */
  #waiting: Mint[] = [];
  /** When each deferred mint may be tried again, by `elapsed`. */
  readonly #deferred = new Map<Mint, number>();
  /** Transactions that are ready, sending or pending, by nonce and by mint. */
  readonly #held = new Map<number, PendingTransaction>();
  readonly #heldBy = new WeakMap<Mint, PendingTransaction>();
  readonly #mined = new Set<Mint>();
  /** Outcomes of the most recently settled mints: a caller may have read the row before the mint settled. */
  readonly #outcomes = new Map<string, Promise<string>>();

  constructor(
    private readonly nonces: Nonces,
    private readonly time: Time,
  ) {
    this.sleeps = {
      preparing: createWakeableSleep(time),
      sending: createWakeableSleep(time),
      following: createWakeableSleep(time),
    };
  }

  stateOf(mint: Mint): MintState {
    return this.#states.get(mint) ?? 'settled';
  }

  find(tokenId: string): Mint | undefined {
    return this.#mints.get(tokenId);
  }

  /** The outcome of a token's mint, pending or settled; undefined when the queue does not know the token. */
  outcomeOf(tokenId: string): Promise<string> | undefined {
    return this.#mints.get(tokenId)?.outcome.promise ?? this.#outcomes.get(tokenId);
  }

  unsettled(): Mint[] {
    return [...this.#mints.values()];
  }

  /** Adds a mint that the queue does not have yet. */
  add(issuance: Issuance, isRecovered: boolean): Mint {
    const mint = new Mint(issuance, this.#order++, isRecovered);
    this.#mints.set(issuance.tokenId, mint);
    this.#outcomes.delete(issuance.tokenId);
    this.#states.set(mint, 'preparing');
    return mint;
  }

  /**
   * Takes up a mint of an earlier run, or one that was final. A transaction that may have been sent is sent
   * again, the same bytes. A mint that was never signed by this wallet waits. A mined one is followed.
   */
  takeUp({ issuance, transactions, mined }: Unfinished, wallet: string): void {
    const mint = this.add(issuance, true);
    mint.transactions = transactions.map(readSignedMint);
    if (mined === undefined) return this.sendAgain(mint, wallet);
    this.mined(mint, mined);
    mint.outcome.resolve(mined.txHash);
  }

  wait(mint: Mint): void {
    if (!this.#leave(mint, 'waiting')) return;
    this.#waiting.push(mint);
    this.#waiting.sort((left, right) => left.order - right.order);
    this.sleeps.preparing.wake();
  }

  /** Sets a mint aside for `ms` milliseconds; the mints after it go on. */
  defer(mint: Mint, ms: number): void {
    if (!this.#leave(mint, 'deferred')) return;
    this.#deferred.set(mint, this.time.elapsed() + ms);
    this.sleeps.preparing.wake();
  }

  /** Moves mints whose time has come to `waiting`. Returns the time until the next is due, or Infinity. */
  resume(): number {
    const now = this.time.elapsed();
    let nextMs = Infinity;
    for (const [mint, until] of this.#deferred) {
      if (until <= now) this.wait(mint);
      else nextMs = Math.min(nextMs, until - now);
    }
    return nextMs;
  }

  hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  takeWaiting(most: number): Mint[] {
    const batch = this.#waiting.slice(0, most);
    for (const mint of batch) this.#leave(mint, 'preparing');
    return batch;
  }

  /** Sends a mint's last transaction again, with the same bytes. If there is none, it waits. */
  sendAgain(mint: Mint, wallet: string): void {
    const pending = lastPending(mint, wallet, this.time);
    if (pending === undefined || this.holderOf(pending.nonce) !== 'nobody') this.wait(mint);
    else this.ready(pending);
  }

  /** Marks a transaction to be sent, also again. Another mint that holds its nonce gets a new one. */
  ready(pending: PendingTransaction): void {
    if (this.#hold(pending, 'ready')) this.sleeps.sending.wake();
  }

  takeReady(): PendingTransaction | undefined {
    const [next] = this.held('ready');
    if (next !== undefined) this.#hold(next, 'sending');
    return next;
  }

  /**
   * Marks a transaction that a node may have. The first pending one wakes the follower; later ones are found
   * by its next poll.
   */
  pending(pending: PendingTransaction): void {
    if (this.held('pending').length === 0) this.sleeps.following.wake();
    this.#hold(pending, 'pending');
  }

  isHeld(pending: PendingTransaction): boolean {
    return this.#heldBy.get(pending.mint) === pending;
  }

  /** The token exists, in a block that is not final. */
  mined(mint: Mint, mined: MinedMint): void {
    if (!this.#leave(mint, 'mined')) return;
    mint.mined = mined;
    mint.wasMined = true;
    mint.goneSince = undefined;
    this.#mined.add(mint);
  }

  /** The token is no longer on the chain. Callers that ask from now on wait again. */
  unmined(mint: Mint): void {
    mint.mined = undefined;
    mint.goneSince = undefined;
    mint.outcome = newOutcome();
    this.#leave(mint, 'preparing');
  }

  /** The mint will not change any more. It can be found until it is forgotten. */
  settle(mint: Mint): void {
    this.#leave(mint, 'settled');
  }

  /** Forgets a settled mint once the journal has its result. */
  forget({ tokenId, outcome }: Mint): void {
    this.#mints.delete(tokenId);
    this.#outcomes.set(tokenId, outcome.promise);
    const [oldest = ''] = this.#outcomes.keys();
    if (this.#outcomes.size > MOST_REMEMBERED) this.#outcomes.delete(oldest);
  }

  /** Transactions that are ready, sending or pending, in the order of their nonces. */
  held(state?: 'ready' | 'pending'): PendingTransaction[] {
    return [...this.#held.values()]
      .filter(({ mint }) => state === undefined || this.stateOf(mint) === state)
      .sort((left, right) => left.nonce - right.nonce);
  }

  highestHeld(): number | undefined {
    return this.#held.size === 0 ? undefined : Math.max(...this.#held.keys());
  }

  allMined(): Mint[] {
    return [...this.#mined];
  }

  /** Whether the queue holds a nonce, and how far its transaction is. */
  holderOf(nonce: number): 'nobody' | 'being sent' | 'pending' {
    const pending = this.#held.get(nonce);
    if (pending === undefined) return this.nonces.isReserved(nonce) ? 'being sent' : 'nobody';
    return this.stateOf(pending.mint) === 'pending' ? 'pending' : 'being sent';
  }

  /** Gives a transaction its nonce and state; false when its mint is mined or settled already. */
  #hold(pending: PendingTransaction, state: 'ready' | 'sending' | 'pending'): boolean {
    const { mint, nonce } = pending;
    if (!this.#leave(mint, state)) return false;
    const other = this.#held.get(nonce);
    if (other !== undefined) this.wait(other.mint);
    this.#held.set(nonce, pending);
    this.#heldBy.set(mint, pending);
    return true;
  }

  /**
   * Takes a mint out of its state and sets the next; false when it is settled, and when it is mined and the
   * change is none of a mined mint. One loop may find the token while another waits for an answer about the
   * same mint, and then asks for a change that is out of date.
   */
  #leave(mint: Mint, next: MintState): boolean {
    const state = this.stateOf(mint);
    if (state === 'settled' || (state === 'mined' && !AFTER_MINED.includes(next))) return false;
    this.#waiting = state === 'waiting' ? this.#waiting.filter((one) => one !== mint) : this.#waiting;
    this.#deferred.delete(mint);
    this.#mined.delete(mint);
    const pending = this.#heldBy.get(mint);
    if (pending !== undefined) this.#held.delete(pending.nonce);
    this.#heldBy.delete(mint);
    this.#states.set(mint, next);
    return true;
  }
}
