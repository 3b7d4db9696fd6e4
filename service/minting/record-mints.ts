import { type ChainError, codeOf, messageOf } from '../base/errors';
import type { Failure, MinedMint } from '../journal/issuance';
import type { MintProgress } from '../journal/mint-progress';
import type { Mint, PendingTransaction, SignedMint, MintQueueOptions } from './mint';
import type { MintStates } from './mint-states';
import { pause } from '../base/time';

const JOURNAL_PAUSE_MS = 1_000;

/**
 * Changes the state of mints and writes it to the journal. Callers get their result once it is durable. While
 * the database is away, writes are delayed and not lost.
 */
export class MintRecorder {
  readonly #underWay = new Set<Promise<void>>();
  #hasOldNonces = false;

  constructor(private readonly options: MintQueueOptions & { states: MintStates; stopping: AbortSignal }) {}

  /** Repeats a journal operation until it succeeds; undefined when the queue stops first. */
  async persist<T>(work: (journal: MintProgress) => Promise<T>): Promise<T | undefined> {
    const { journal, logger, stopping, time } = this.options;
    while (!stopping.aborted) {
      try {
        return await work(journal);
      } catch (error) {
        if (codeOf(error) === 'ISSUANCE_UNKNOWN') throw error;
        logger.error({ error }, 'the journal of mints cannot be used: trying again');
        await pause(time, JOURNAL_PAUSE_MS, stopping);
      }
    }
    return undefined;
  }

  /** Writes transactions to the journal before they are sent; false when the queue stops first. */
  async keep(signed: readonly SignedMint[]): Promise<boolean> {
    const transactions = signed.map(({ tokenId, hash, nonce, raw }) => ({ tokenId, hash, nonce, raw }));
    const kept = await this.persist((journal) => journal.keepTransactions(transactions).then(() => true));
    return kept === true;
  }

  /** Writes `submitted` for mints that a node may have, except those mined meanwhile. */
  submitted(pending: readonly PendingTransaction[]): void {
    const { states } = this.options;
    const mints = pending.map(({ mint }) => mint).filter(({ isNoted }) => !isNoted);
    for (const mint of mints) mint.isNoted = true;
    this.#record(mints, async (journal) => {
      const open = mints.filter((mint) => mint.mined === undefined && states.stateOf(mint) !== 'settled');
      if (open.length > 0) await journal.submitted(open.map(({ tokenId }) => tokenId));
    });
  }

  /** The token exists. */
  mined(mint: Mint, mined: MinedMint): void {
    const { states, confirmations, logger, lifecycle } = this.options;
    const isFinal = confirmations === 0;
    if (states.stateOf(mint) === 'settled' || mint.mined?.block.hash === mined.block.hash) return;
    states.mined(mint, mined);
    if (isFinal) states.settle(mint);
    // If the block goes away meanwhile, the mint gets a new outcome.
    const { outcome } = mint;
    this.#record([mint], async (journal) => {
      const tokenId = mint.tokenId;
      const { txHash, block } = mined;
      await journal.mined(tokenId, mined, isFinal);
      lifecycle.emit('mined', tokenId, block.number);
      logger.debug({ tokenId, txHash, block: block.number, isFinal }, 'mint mined');
      outcome.resolve(txHash);
      if (isFinal) states.forget(mint);
    });
  }

  /** The blocks of these mints are final. */
  final(mints: readonly Mint[]): void {
    const { states } = this.options;
    for (const mint of mints) states.settle(mint);
    this.#record(mints, async (journal) => {
      await journal.final(mints.map(({ tokenId }) => tokenId));
      for (const mint of mints) states.forget(mint);
    });
  }

  /** The block of the mint is gone. */
  unmined(mint: Mint): void {
    const { states, logger } = this.options;
    const tokenId = mint.tokenId;
    logger.warn({ tokenId, ...mint.mined }, 'mint sent again: the block that it was mined in is gone');
    states.unmined(mint);
    mint.isNoted = true;
    this.#record([mint], (journal) => journal.unmined(tokenId));
  }

  /** The token does not exist, and no sent transaction can make it. */
  failed(mint: Mint, error: ChainError): void {
    const { states, logger, lifecycle } = this.options;
    if (states.stateOf(mint) === 'settled') return;
    states.settle(mint);
    this.#record([mint], async (journal) => {
      const tokenId = mint.tokenId;
      await journal.failed(tokenId, this.#failureOf(error));
      logger.error({ tokenId, error }, 'mint failed');
      lifecycle.emit('mint failed', error.code);
      mint.outcome.reject(error);
      states.forget(mint);
    });
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

  /** A reorganisation removed the final blocks of this many mints, from block `since` on. */
  reorganised(mints: number, since: number): void {
    const { logger, lifecycle } = this.options;
    lifecycle.emit('mints reorganised', mints);
    logger.error({ mints, since }, 'a reorganisation took the blocks of final mints');
  }

  /** Resolves when all journal writes have ended. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Writes the changes of a mint one after the other. */
  #record(mints: readonly Mint[], work: (journal: MintProgress) => Promise<void>): void {
    if (mints.length === 0) return;
    const before = Promise.all(mints.map(({ recorded }) => recorded));
    const recorded = before
      .then(() => this.persist(work))
      .catch((error: unknown) => this.#drop(mints, error));
    for (const mint of mints) mint.recorded = recorded;
    this.#underWay.add(recorded);
    void recorded.finally(() => this.#underWay.delete(recorded));
  }

  /** Drops mints that the journal does not have, or has as failed. */
  #drop(mints: readonly Mint[], error: unknown): void {
    const { states, logger } = this.options;
    logger.error({ error, tokenIds: mints.map(({ tokenId }) => tokenId) }, messageOf(error));
    for (const mint of mints) {
      mint.outcome.reject(error as Error);
      states.settle(mint);
      states.forget(mint);
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
