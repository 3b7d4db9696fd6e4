import { simulationFailed } from '../registry/simulate-mint';
import { ChainError } from '../errors';
import type { MinedMint } from '../journal/issuance';
import { giveUp, recordMined } from './give-up';
import { resetNonces, signAnew } from './handle-rejections';
import { MintFinality } from './mint-finality';
import type { PendingTransaction } from './mint';
import { pause, type MintTiming, type QueueParts } from './queue-parts';
import { MintResending } from './resend-mints';

const SHORTEST_POLL_MS = 40;
const MOST_ESTIMATES = 2;
/** Of the gas limit, in hundredths: what used more than that has run out of it. Each call inside keeps a 64th back. */
const NEARLY_ALL = 95n;
/** For fewer, their receipts are as cheap as one question for logs. */
const FEWEST_FOR_LOGS = 3;
/** Blocks that every provider answers for. */
const MOST_BLOCKS = 100;

/**
 * Follows all that is pending or mined together: each time one question, how many transactions of the wallet are mined, and then what became of those
 * that must be. What is mined is followed until its block is final; the blocks of final mints are looked at now and then.
 */
export class MintFollowing {
  readonly #parts: QueueParts;
  readonly #resending: MintResending;
  readonly #finality: MintFinality;
  /** The newest block when logs were last read. */
  #logsRead: number | undefined;

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#resending = new MintResending(parts);
    this.#finality = new MintFinality(parts);
  }

  async run(): Promise<void> {
    const { states, timing, logger, stopping } = this.#parts;
    const asleep = states.sleeps.following;
    let isAway = false;
    while (!stopping.aborted) {
      asleep.reset();
      const lookedAt = performance.now();
      try {
        await this.#look();
        isAway = false;
      } catch (error) {
        if (!isAway) logger.warn({ error }, 'mints cannot be followed: the node cannot be asked');
        isAway = true;
        asleep.reset();
      }
      this.#parts.recorder.submitted(states.held('pending'));
      await asleep.sleep(this.#pauseMs(timing));
      // With many at once, each that is taken wakes: several are looked for together.
      const restMs = SHORTEST_POLL_MS - (performance.now() - lookedAt);
      if (restMs > 0) await pause(restMs, stopping);
    }
  }

  /** What is mined changes seldom. */
  #pauseMs({ pollMs, finalCheckMs }: MintTiming): number {
    const { states } = this.#parts;
    if (states.held().length > 0) return pollMs;
    return states.allMined().length > 0 ? Math.min(4 * pollMs, finalCheckMs) : finalCheckMs;
  }

  async #look(): Promise<void> {
    const { states } = this.#parts;
    const held = states.held().filter(({ versions }) => versions.some(({ mayBeTaken }) => mayBeTaken));
    if (held.length > 0) await this.#lookAtPending(held);
    const mined = states.allMined();
    if (mined.length > 0) await this.#finality.lookAtMined(mined);
    await this.#finality.lookAtFinal();
  }

  async #lookAtPending(held: readonly PendingTransaction[]): Promise<void> {
    const { chain, wallet, nonces, width, timing, states } = this.#parts;
    const used = await chain.count(wallet.address, 'latest');
    const newest = held.at(-1)?.nonce ?? 0;
    width.looked(used > newest);
    nonces.note(used, true);
    if (used < nonces.floor) {
      // Not when a node is behind, and not while a reorganisation has put back what waits to be mined again.
      nonces.note(await chain.count(wallet.address, 'pending'));
      if (nonces.lowForMs() >= timing.patienceMs) return resetNonces(this.#parts, used);
    }
    const landed = held.filter(({ nonce }) => nonce < used);
    await this.#findByLogs(landed);
    await Promise.all(landed.map((pending) => this.#judge(pending)));
    await this.#resending.look(states.held('pending'), used);
  }

  /** What it does not tell is open: for that, there are receipts. */
  async #findByLogs(landed: readonly PendingTransaction[]): Promise<void> {
    if (landed.length < FEWEST_FOR_LOGS) return;
    const { chain } = this.#parts;
    const from = this.#logsRead;
    const head = await chain.head();
    this.#logsRead = head;
    if (from === undefined || head < from || head - from >= MOST_BLOCKS) return;
    const tokenIds = landed.map(({ mint }) => mint.issuance.tokenId);
    const found = await chain.mintedBetween(from, head, tokenIds).catch(() => new Map<string, MinedMint>());
    for (const { mint } of landed) {
      const mined = found.get(mint.issuance.tokenId);
      if (mined !== undefined) recordMined(this.#parts, mint, mined);
    }
  }

  /**
   * Decides about a transaction whose nonce is used. Whichever transaction made the token counts. When none did, that is certain only at a block that has
   * CONFIRMATIONS blocks on top.
   */
  async #judge(pending: PendingTransaction): Promise<void> {
    const { chain, states, timing, wallet, terms } = this.#parts;
    const { mint, nonce } = pending;
    const { tokenId } = mint.issuance;
    if (!states.isHeld(pending)) return;
    const ofAll = await chain.verdictOn(
      tokenId,
      mint.transactions.map(({ hash }) => hash),
    );
    if (!states.isHeld(pending)) return;
    if (ofAll.state === 'mined') return recordMined(this.#parts, mint, ofAll.mined);
    const own = await chain.verdictOn(
      tokenId,
      pending.versions.map(({ hash }) => hash),
    );
    pending.missingSince ??= performance.now();
    // A node may tell a count before it has the receipts.
    if (own.state === 'none' && performance.now() - pending.missingSince < timing.patienceMs) return;
    const deep = chain.deepBelow(await chain.head());
    if (deep < 0 || (await chain.count(wallet.address, deep)) <= nonce) return;
    const mined = (await chain.existsAt(tokenId, deep)) ? await chain.findMint(tokenId, []) : undefined;
    if (!states.isHeld(pending)) return;
    if (mined !== undefined) return recordMined(this.#parts, mint, mined);
    if (own.state === 'reverted') return this.#judgeReverted(pending, own.hash, own.usedGas);
    if (own.state === 'no token') terms.forgetGas();
    // Without a registry this fails when its gas is estimated.
    signAnew(
      this.#parts,
      pending,
      own.state === 'none' ? 'somebody else used its nonce' : 'it made no token',
    );
  }

  async #judgeReverted(pending: PendingTransaction, hash: string, usedGas: bigint): Promise<void> {
    const { terms } = this.#parts;
    const { mint } = pending;
    const signed = mint.transactions.find((transaction) => transaction.hash === hash);
    if (usedGas * 100n >= (signed?.gasLimit ?? 0n) * NEARLY_ALL && mint.estimates++ < MOST_ESTIMATES) {
      terms.forgetGas();
      return signAnew(this.#parts, pending, 'it ran out of gas');
    }
    const refusal = await terms.refusalOf(mint);
    const cause = refusal === undefined ? undefined : simulationFailed(refusal);
    const message = `Transaction ${hash} was mined, but reverted.`;
    const remedy = cause?.remedy ?? 'Send the request again.';
    await giveUp(this.#parts, mint, new ChainError('MINT_REVERTED', message, { cause, remedy }));
  }
}
