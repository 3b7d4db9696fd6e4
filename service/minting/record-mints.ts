import { type ChainError, codeOf, messageOf } from '../errors';
import type { Journal } from '../journal/journal';
import type { Failure, MinedMint } from '../journal/issuance';
import type { Logger } from '../logger';
import type { Mint, PendingTransaction, SignedMint } from './mint';
import type { MintStates } from './mint-states';
import { pause } from './queue-parts';

/** What the queue needs of the journal. */
export type MintJournal = Pick<
  Journal,
  | 'unfinished'
  | 'keepTransactions'
  | 'submitted'
  | 'mined'
  | 'final'
  | 'unmined'
  | 'failed'
  | 'enterChain'
  | 'finalBlocks'
  | 'finalSince'
>;

/** Told what the service counts. */
export interface MintObserver {
  /** A mint failed, with this code. */
  failed(code: string): void;
  /** A reorganisation deeper than CONFIRMATIONS took the blocks of so many mints. */
  reorganised(mints: number): void;
}

const JOURNAL_PAUSE_MS = 1_000;

/**
 * Moves mints to where what is known of them belongs, and writes it to the journal; callers are told when it is durable. A database that is away
 * delays that and loses nothing.
 */
export class MintRecorder {
  readonly #states: MintStates;
  readonly #journal: MintJournal;
  readonly #logger: Logger;
  readonly #mask: (text: string) => string;
  readonly #observer: MintObserver;
  readonly #stopping: AbortSignal;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: {
    states: MintStates;
    journal: MintJournal;
    logger: Logger;
    mask: (text: string) => string;
    observer: MintObserver;
    stopping: AbortSignal;
  }) {
    this.#states = options.states;
    this.#journal = options.journal;
    this.#logger = options.logger;
    this.#mask = options.mask;
    this.#observer = options.observer;
    this.#stopping = options.stopping;
  }

  /** Does something in the journal until it succeeds; undefined when the queue stops before. */
  async persist<T>(work: (journal: MintJournal) => Promise<T>): Promise<T | undefined> {
    while (!this.#stopping.aborted) {
      try {
        return await work(this.#journal);
      } catch (error) {
        if (codeOf(error) === 'ISSUANCE_UNKNOWN') throw error;
        this.#logger.error({ error }, 'the journal of mints cannot be used: it is tried again');
        await pause(JOURNAL_PAUSE_MS, this.#stopping);
      }
    }
    return undefined;
  }

  /** Keeps transactions, which comes before sending them. False when the queue stops. */
  async keep(signed: readonly SignedMint[]): Promise<boolean> {
    const transactions = signed.map(({ tokenId, hash, nonce, raw }) => ({ tokenId, hash, nonce, raw }));
    const kept = await this.persist(async (journal) => {
      await journal.keepTransactions(transactions);
      return true;
    });
    return kept === true;
  }

  /** Notes those that a node may have and that are not mined at once, together. */
  submitted(pending: readonly PendingTransaction[]): void {
    const mints = pending.map(({ mint }) => mint).filter(({ isNoted }) => !isNoted);
    if (mints.length === 0) return;
    for (const mint of mints) mint.isNoted = true;
    const before = Promise.all(mints.map(({ recorded }) => recorded));
    const noted = before.then(async () => {
      const open = mints.filter(
        (mint) => this.#states.stateOf(mint) !== 'settled' && mint.mined === undefined,
      );
      const tokenIds = open.map(({ issuance }) => issuance.tokenId);
      if (tokenIds.length > 0) await this.persist((journal) => journal.submitted(tokenIds));
    });
    for (const mint of mints) mint.recorded = noted;
    this.#track(noted);
  }

  /** The token exists. */
  mined(mint: Mint, mined: MinedMint, isFinal: boolean): void {
    const state = this.#states.stateOf(mint);
    if (state === 'settled' || (state === 'mined' && mint.mined?.block.hash === mined.block.hash)) return;
    this.#states.mined(mint, mined);
    if (isFinal) this.#states.settle(mint);
    const { tokenId } = mint.issuance;
    const { outcome } = mint;
    this.#record(mint, async (journal) => {
      await journal.mined(tokenId, mined, isFinal);
      const { txHash, block } = mined;
      this.#logger.info({ tokenId, txHash, block: block.number, isFinal }, 'mint mined');
      outcome.resolve(txHash);
      if (isFinal) this.#states.forget(mint);
    });
  }

  /** Their blocks are deep enough. */
  final(mints: readonly Mint[]): void {
    if (mints.length === 0) return;
    for (const mint of mints) this.#states.settle(mint);
    const before = Promise.all(mints.map(({ recorded }) => recorded));
    const noted = before.then(async () => {
      const tokenIds = mints.map(({ issuance }) => issuance.tokenId);
      await this.persist(async (journal) => {
        await journal.final(tokenIds);
        this.#logger.debug({ tokenIds }, 'mints final');
        for (const mint of mints) this.#states.forget(mint);
      });
    });
    for (const mint of mints) mint.recorded = noted;
    this.#track(noted);
  }

  /** The block that it was mined in is gone. */
  unmined(mint: Mint): void {
    const { tokenId } = mint.issuance;
    this.#logger.warn({ tokenId, ...mint.mined }, 'mint sent again: the block that it was mined in is gone');
    this.#states.unmined(mint);
    mint.isNoted = true;
    this.#record(mint, (journal) => journal.unmined(tokenId));
  }

  /** The token does not exist, and nothing that was sent can make it. */
  failed(mint: Mint, error: ChainError): void {
    if (this.#states.stateOf(mint) === 'settled') return;
    const { tokenId } = mint.issuance;
    this.#states.settle(mint);
    this.#record(mint, async (journal) => {
      await journal.failed(tokenId, this.#failureOf(error));
      this.#logger.error({ tokenId, error }, 'mint failed');
      this.#observer.failed(error.code);
      mint.outcome.reject(error);
      this.#states.forget(mint);
    });
  }

  /** False when the blocks in the journal were those of another chain. */
  async enterChain(genesisHash: string): Promise<boolean> {
    return (await this.persist((journal) => journal.enterChain(genesisHash))) ?? true;
  }

  /** How many mints a deep reorganisation took. */
  reorganised(mints: number, ancestor: number | undefined): void {
    this.#observer.reorganised(mints);
    this.#logger.error(
      { mints, ancestor },
      'a reorganisation deeper than CONFIRMATIONS took the blocks of final mints',
    );
  }

  /** Resolves when nothing is being written. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #record(mint: Mint, work: (journal: MintJournal) => Promise<void>): void {
    mint.recorded = mint.recorded.then(() =>
      this.persist(work).catch((error: unknown) => {
        this.#logger.error({ error }, messageOf(error));
        mint.outcome.reject(error as Error);
        this.#states.settle(mint);
        this.#states.forget(mint);
      }),
    );
    this.#track(mint.recorded);
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  /** With the remedy: whoever reads the journal sees nothing else. Libraries put URLs, with their keys, into messages. */
  #failureOf(error: ChainError): Failure {
    const { code, remedy } = error;
    const message = messageOf(error);
    const whole = remedy === undefined || message.includes(remedy) ? message : `${message} ${remedy}`;
    return { code, message: this.#mask(whole) };
  }
}
