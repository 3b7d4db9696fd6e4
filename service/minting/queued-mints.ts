import { type ChainError, codeOf, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { createWakeableSleep, type Deferred, newDeferred, pause, type WakeableSleep } from '../base/time';
import { addSpan, traceIdOf } from '../base/trace';
import { createFinalBlockReading } from '../chain/finality';
import type { Failure, MinedMint, Unfinished } from '../journal/issuance';
import type { MintProgress } from '../journal/mint-progress';
import type { Remedy } from './decide-rejection';
import {
  HELD_STATES,
  heldBy,
  issuanceStateOf,
  lastSignedBy,
  minedIn,
  nonceOf,
  recoveredMint,
  step,
  type HeldState,
  type Mint,
  type MintQueueOptions,
  type MintState,
  type Observation,
} from './mint';
import { MintNode } from './node';
import { Nonces, TransactionTerms } from './transaction-terms';

/** A mint in the queue, whose state changes. */
export interface QueuedMint {
  mint: Mint;
  readonly tokenId: string;
  /** Its lines name the token and the trace. */
  readonly logger: Logger;
  /** Position in the queue: lower ones first. */
  readonly order: number;
  /** The result for callers: the hash of the transaction that made the token, or the error. */
  outcome: Deferred<string>;
  /** Whether the journal has it as `submitted`. */
  isNoted: boolean;
  /** Its last journal write; the next one waits for it. */
  recorded: Promise<void>;
}

const JOURNAL_PAUSE_MS = 1_000;
const MOST_REMEMBERED = 10_000;

/**
 * The mints of a queue, and what its turns share. `observe` alone changes a mint. Each nonce is held by at
 * most one mint. Callers get their result once the journal has it; while the database is away, writes are
 * delayed and not lost.
 */
export class QueuedMints {
  readonly nonces: Nonces;
  readonly node: MintNode;
  readonly terms: TransactionTerms;
  /** Whether the node mines each transaction on arrival, as far as is known. */
  minesAtOnce: boolean;
  /** Until then, by `elapsed`, transactions are sent one after the other: one was refused for its order. */
  narrowUntil = -Infinity;
  /** Each turn of the queue sleeps until it has work. */
  readonly sleeps: Record<'preparing' | 'sending' | 'following', WakeableSleep>;
  /** How long a contradicting answer is attributed to a node that is behind. A local node never is. */
  readonly patienceMs: number;
  readonly #byToken = new Map<string, QueuedMint>();
  readonly #byState = new Map<MintState['name'], Set<QueuedMint>>();
  /** Outcomes of the most recently settled mints: a caller may have read the row before the mint settled. */
  readonly #outcomes = new Map<string, Promise<string>>();
  readonly #writes = new Set<Promise<void>>();
  #order = 0;
  #hasOldNonces = false;

  constructor(
    readonly options: MintQueueOptions,
    readonly stopping: AbortSignal,
  ) {
    const { client, network, registryAddress, confirmations, time } = options;
    this.nonces = new Nonces(time);
    const readFinalBlock = createFinalBlockReading(client, network, confirmations);
    this.node = new MintNode(client, registryAddress, readFinalBlock);
    this.terms = new TransactionTerms(options);
    this.minesAtOnce = network.local;
    this.patienceMs = network.local ? 1_000 : Math.max(3 * network.blockTimeMs, 15_000);
    this.sleeps = {
      preparing: createWakeableSleep(time),
      sending: createWakeableSleep(time),
      following: createWakeableSleep(time),
    };
  }

  find(tokenId: string): QueuedMint | undefined {
    return this.#byToken.get(tokenId);
  }

  /** The outcome of a token's mint, pending or settled; undefined when the queue does not know the token. */
  outcomeOf(tokenId: string): Promise<string> | undefined {
    return this.find(tokenId)?.outcome.promise ?? this.#outcomes.get(tokenId);
  }

  all(): QueuedMint[] {
    return [...this.#byToken.values()];
  }

  in(name: MintState['name']): QueuedMint[] {
    return [...(this.#byState.get(name) ?? [])];
  }

  /** The waiting mints in the queue's order, and milliseconds until each may be tried, or less than 0. */
  waiting(): { queued: QueuedMint; dueMs: number }[] {
    const now = this.options.time.elapsed();
    return this.in('waiting')
      .sort((left, right) => left.order - right.order)
      .map((queued) => ({ queued, dueMs: 'until' in queued.mint.state ? queued.mint.state.until - now : 0 }));
  }

  /** Mints that hold a nonce, in the order of their nonces. */
  held(...names: HeldState[]): QueuedMint[] {
    return (names.length === 0 ? HELD_STATES : names)
      .flatMap((name) => this.in(name))
      .sort((left, right) => nonceOf(left.mint) - nonceOf(right.mint));
  }

  /** Whether the queue holds a nonce, and how far its transaction is. */
  holderOf(nonce: number): 'nobody' | 'being sent' | 'pending' {
    const holder = this.#holderOf(nonce);
    if (holder === undefined) return this.nonces.isReserved(nonce) ? 'being sent' : 'nobody';
    return holder.mint.state.name === 'pending' ? 'pending' : 'being sent';
  }

  /** Adds a mint that the queue does not have yet. It waits for its turn, unless it is mined. */
  add(mint: Mint): QueuedMint {
    const { tokenId, state, trace } = mint.issuance;
    const queued = {
      mint,
      tokenId,
      logger: this.options.logger.child({ tokenId, traceId: traceIdOf(trace) }),
      order: this.#order++,
      outcome: newOutcome(),
      isNoted: state === 'submitted',
      recorded: Promise.resolve(),
    };
    this.#byToken.set(tokenId, queued);
    this.#outcomes.delete(tokenId);
    this.#set(queued, mint);
    return queued;
  }

  /**
   * Takes up a mint of an earlier run, or one that was final. A transaction that may have been sent is sent
   * again, the same bytes. A mint that was never signed by this wallet waits. A mined one is followed.
   */
  takeUp(unfinished: Unfinished): void {
    const queued = this.add(recoveredMint(unfinished));
    if (unfinished.mined === undefined) this.placeAnew(queued);
    else queued.outcome.resolve(unfinished.mined.txHash);
  }

  /**
   * Sends a waiting mint's last transaction again, with the same bytes. If there is none, it waits.
   */
  placeAnew(queued: QueuedMint): void {
    const { wallet, time } = this.options;
    const from = wallet.address;
    const nonce = lastSignedBy(from, queued.mint)?.nonce;
    if (nonce !== undefined && this.holderOf(nonce) === 'nobody')
      this.observe(queued, { saw: 'sendable', from, nonce, at: time.elapsed() });
  }

  /** Sets a mint aside for `ms` milliseconds; the mints after it go on. */
  defer(queued: QueuedMint, ms: number): void {
    this.observe(queued, { saw: 'obstacle', until: this.options.time.elapsed() + ms });
  }

  /** The token exists. */
  found(queued: QueuedMint, mined: MinedMint): void {
    this.observe(queued, { saw: 'token', mined, isFinal: this.options.confirmations === 0 });
  }

  /** Steps a mint. Another mint that holds its nonce gets a new one. Returns what is left to do. */
  observe(queued: QueuedMint, observation: Observation): Remedy | undefined {
    const before = queued.mint;
    const { mint, command } = step(before, observation);
    if (mint === before) return undefined;
    if (observation.saw === 'sendable') {
      const holder = this.#holderOf(observation.nonce);
      if (holder !== undefined && holder !== queued) this.observe(holder, { saw: 'no nonce' });
    }
    // A node must not wait for a nonce that no transaction uses.
    const needsGas = observation.saw === 'out of gas' || command === 'estimate again';
    const isSetAside = mint.state.name === 'waiting' && mint.state.until > 0;
    if (heldBy(before) && (needsGas || isSetAside)) this.nonces.free(nonceOf(before));
    this.#set(queued, mint);
    // Later ones are found by the next poll.
    const isFirst = before.state.name !== 'pending' && this.in('pending').length === 1;
    if (mint.state.name === 'pending' && isFirst) this.sleeps.following.wake();
    if (command !== 'record') return command;
    this.#record(queued, before);
    return undefined;
  }

  /** Writes `submitted` for mints that a node may have. */
  recordSubmitted(): void {
    const pending = this.held('pending').filter(({ isNoted }) => !isNoted);
    for (const queued of pending) queued.isNoted = true;
    this.#write(pending, (journal) => journal.submitted(pending.map(({ tokenId }) => tokenId)));
  }

  /** The blocks of these mints are final. */
  recordFinal(final: readonly QueuedMint[]): void {
    for (const queued of final) this.observe(queued, { saw: 'final block' });
    this.#write(final, async (journal) => {
      await journal.final(final.map(({ tokenId }) => tokenId));
      for (const queued of final) this.#forget(queued);
    });
  }

  /** Repeats a journal operation until it succeeds; undefined when the queue stops first. */
  async persist<T>(work: (journal: MintProgress) => Promise<T>): Promise<T | undefined> {
    const { journal, logger, time } = this.options;
    while (!this.stopping.aborted) {
      try {
        return await work(journal);
      } catch (error) {
        if (codeOf(error) === 'ISSUANCE_UNKNOWN') throw error;
        logger.error({ error }, 'the journal of mints cannot be used: trying again');
        await pause(time, JOURNAL_PAUSE_MS, this.stopping);
      }
    }
    return undefined;
  }

  /** Notes the chain, if it is known; false when the journal's blocks were those of another chain. */
  async enterChain(originHash: string | undefined): Promise<boolean> {
    if (originHash === undefined) return true;
    const isSame = (await this.persist((journal) => journal.enterChain(originHash))) ?? true;
    this.#hasOldNonces ||= !isSame;
    return isSame;
  }

  /** Whether the nonces are those of another chain, whichever part noticed first. Answers true once. */
  async leavesOldNonces(originHash: string | undefined): Promise<boolean> {
    await this.enterChain(originHash);
    const hasOldNonces = this.#hasOldNonces;
    this.#hasOldNonces = false;
    return hasOldNonces;
  }

  /** Resolves when all journal writes have ended. */
  async finish(): Promise<void> {
    await Promise.all(this.#writes);
  }

  #holderOf(nonce: number): QueuedMint | undefined {
    return HELD_STATES.flatMap((name) => this.in(name)).find((queued) => nonceOf(queued.mint) === nonce);
  }

  #set(queued: QueuedMint, mint: Mint): void {
    this.#byState.get(queued.mint.state.name)?.delete(queued);
    queued.mint = mint;
    const { name } = mint.state;
    this.#byState.set(name, (this.#byState.get(name) ?? new Set()).add(queued));
    if (name === 'waiting') this.sleeps.preparing.wake();
    if (name === 'ready') this.sleeps.sending.wake();
  }

  /** Forgets a settled mint once the journal has its result. */
  #forget(queued: QueuedMint): void {
    const { tokenId, outcome } = queued;
    this.#byToken.delete(tokenId);
    this.#byState.get('settled')?.delete(queued);
    this.#outcomes.set(tokenId, outcome.promise);
    const [oldest = ''] = this.#outcomes.keys();
    if (this.#outcomes.size > MOST_REMEMBERED) this.#outcomes.delete(oldest);
  }

  /** Writes the state of a mint to the journal. */
  #record(queued: QueuedMint, before: Mint): void {
    const { lifecycle, time } = this.options;
    const { tokenId, mint, logger } = queued;
    const { trace, createdAt } = mint.issuance;
    const { state } = mint;
    const isFinal = issuanceStateOf(mint) === 'final';
    if (issuanceStateOf(mint) === 'submitted') {
      logger.warn({ ...minedIn(before) }, 'mint sent again: the block that it was mined in is gone');
      queued.outcome = newOutcome();
      queued.isNoted = true;
    }
    // If the block goes away meanwhile, the mint gets a new outcome.
    const { outcome } = queued;
    this.#write([queued], async (journal) => {
      if ('mined' in state) {
        const { txHash, block } = state.mined;
        await journal.mined(tokenId, state.mined, isFinal);
        lifecycle.emit('mined', tokenId, block.number);
        outcome.resolve(txHash);
        const { signedAt } = mint.transactions.find(({ hash }) => hash === txHash) ?? {};
        addSpan('mint', trace, createdAt, time.now(), { 'etr.token_id': tokenId });
        if (signedAt) addSpan('block', trace, signedAt, time.now());
      } else if ('error' in state) {
        const { error } = state;
        await journal.failed(tokenId, this.#failureOf(error));
        logger.error({ error }, 'mint failed');
        lifecycle.emit('mint failed', error.code);
        outcome.reject(error);
      } else await journal.unmined(tokenId);
      if (state.name === 'settled') this.#forget(queued);
    });
  }

  /** Writes the changes of a mint one after the other. */
  #write(mints: readonly QueuedMint[], work: (journal: MintProgress) => Promise<void>): void {
    if (mints.length === 0) return;
    const before = Promise.all(mints.map(({ recorded }) => recorded));
    const recorded = before
      .then(() => this.persist(work))
      .catch((error: unknown) => this.#drop(mints, error));
    for (const queued of mints) queued.recorded = recorded;
    this.#writes.add(recorded);
    void recorded.finally(() => this.#writes.delete(recorded));
  }

  /** Drops mints that the journal does not have, or has as failed. */
  #drop(mints: readonly QueuedMint[], error: unknown): void {
    this.options.logger.error({ error, tokenIds: mints.map(({ tokenId }) => tokenId) }, messageOf(error));
    for (const queued of mints) {
      queued.outcome.reject(error as Error);
      this.observe(queued, { saw: 'no issuance', error: error as ChainError });
      this.#forget(queued);
    }
  }

  /**
   * Adds reason and remedy to the message, because a reader of the journal sees nothing else. Masks it,
   * because libraries put URLs with their keys into messages.
   */
  #failureOf(error: ChainError): Failure {
    const { code, remedy, reason } = error;
    const message = messageOf(error) + (reason === undefined ? '' : ` (${reason}).`);
    const whole = remedy === undefined || message.includes(remedy) ? message : `${message} ${remedy}`;
    return { code, message: this.options.mask(whole) };
  }
}

/** The result of a mint for its callers. */
function newOutcome(): Deferred<string> {
  const outcome = newDeferred<string>();
  // Without a caller, a rejection would be unhandled.
  outcome.promise.catch(() => undefined);
  return outcome;
}
