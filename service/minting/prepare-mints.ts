import { highestGasPrice } from '../chain/transactions';
import { isReverted, nodeErrorOf, classifyRefusal } from '../chain/node-errors';
import { simulationFailed } from '../registry/simulate-mint';
import { ChainError, SignerError } from '../base/errors';
import { lastPending, type Mint, PendingTransaction } from './mint';
import { pause } from '../base/time';
import { giveUp, shortOfFunds } from './handle-rejections';
import type { QueueParts } from './queue-parts';

/** How many mints are signed and kept in the journal together. */
const BATCH = 16;
/**
 * The next batch is prepared when fewer than this are ready, so that the last ones are sent while the batch
 * is written. A batch costs one commit and one transaction count.
 */
const FEWEST_READY = 6;
const IDLE_MS = 60_000;
const NODE_PAUSE_MS = 500;
const SIGNER_PAUSE_MS = 1_000;
/** How often a node may refuse to estimate for an unknown reason. */
const MOST_DEFERRALS = 5;
const REFUSED_PAUSE_MS = 1_000;
const MISSING_PAUSE_MS = 500;

/**
 * Gives nonces to waiting mints, signs them and keeps them in the journal, while earlier ones are being sent.
 */
export async function prepareMints(parts: QueueParts): Promise<void> {
  const { chain, logger, nonces, recorder, states, stopping, terms, time, timing, wallet } = parts;

  const asleep = states.sleeps.preparing;
  while (!stopping.aborted) {
    asleep.reset();
    const sleepMs = Math.min(states.resume(), IDLE_MS);
    fillHoles();
    const areNeeded = nonces.lowestFreed() !== undefined || states.held('ready').length < FEWEST_READY;
    const batch = states.takeWaiting(areNeeded ? BATCH : 0);
    if (batch.length === 0) await asleep.sleep(sleepMs);
    else await prepare(batch);
  }

  /**
   * Fills a nonce that was taken back. If no mint waits for one, the mint with the highest nonce is signed
   * again with it.
   */
  function fillHoles(): void {
    const hole = nonces.lowestFreed();
    if (hole === undefined || states.hasWaiting()) return;
    const last = states.held().findLast(({ mint }) => states.stateOf(mint) !== 'sending');
    if (last === undefined || last.nonce < hole) return;
    states.wait(last.mint);
    if (!last.newest.mayBeTaken) nonces.free(last.nonce);
  }

  async function prepare(batch: readonly Mint[]): Promise<void> {
    try {
      await Promise.all(batch.map((mint) => orDefer(mint, lookUp(mint))));
      const limits = await gasLimits(batch.filter((mint) => states.stateOf(mint) === 'preparing'));
      if (limits.size > 0) await sign(limits);
    } catch (error) {
      const isOfSigner = error instanceof SignerError;
      const whom = isOfSigner ? "the wallet's signer" : 'the node';
      logger.warn({ error, mints: batch.length }, `mints wait: ${whom} cannot be asked`);
      await pause(time, isOfSigner ? SIGNER_PAUSE_MS : NODE_PAUSE_MS, stopping);
    }
    for (const mint of batch) if (states.stateOf(mint) === 'preparing') states.wait(mint);
  }

  /** Defers a mint if the node cannot answer for it; the others go on. */
  async function orDefer<T>(mint: Mint, work: Promise<T>): Promise<T | undefined> {
    return work.catch((error: unknown) => {
      logger.warn({ tokenId: mint.tokenId, error }, 'mint deferred: the node cannot be asked about it');
      states.defer(mint, NODE_PAUSE_MS);
      return undefined;
    });
  }

  /**
   * Looks up a mint that was signed before. Its transaction may be mined by now, whatever a node said then. A
   * refused mint whose transactions cannot be mined any more has failed.
   */
  async function lookUp(mint: Mint): Promise<void> {
    if (mint.transactions.length === 0) return;
    const mined = await parts.chain.findMint(mint);
    if (mined !== undefined) return recorder.mined(mint, mined);
    if (mint.refusal !== undefined) await giveUp(parts, mint, mint.refusal);
    if (mint.refusal !== undefined || mint.isUnfunded) await sendRefusedAgain(mint);
  }

  /**
   * Sends the same bytes again while their nonce is unused: a mint that is refused for days must not be
   * signed at every attempt. It is signed anew once the nonce is used at depth, and when the wallet could not
   * pay and fees are less than half of what it offers: the wallet may be able to pay now.
   */
  async function sendRefusedAgain(mint: Mint): Promise<void> {
    const pending = lastPending(mint, wallet.address, time);
    if (pending === undefined) return;
    states.defer(mint, timing.patienceMs);
    const { nonce } = pending;
    const areFeesLower = mint.isUnfunded && (await haveFeesHalved(pending));
    if ((await chain.count(wallet.address, 'latest')) > nonce) {
      const finalBlock = await chain.finalBlock();
      if (finalBlock < 0 || (await chain.count(wallet.address, finalBlock)) <= nonce) return;
    } else if (states.holderOf(nonce) !== 'nobody') {
      return;
    } else if (areFeesLower) {
      nonces.free(nonce);
    } else {
      nonces.take(nonce);
      return states.ready(pending);
    }
    mint.refusal = undefined;
    mint.isUnfunded = false;
  }

  async function haveFeesHalved({ newest: { fees } }: PendingTransaction): Promise<boolean> {
    return highestGasPrice(await terms.fees()) * 2n < highestGasPrice(fees);
  }

  /** The gas limits of the mints that can be sent now. The others are deferred or given up. */
  async function gasLimits(mints: readonly Mint[]): Promise<Map<Mint, bigint>> {
    const limits = new Map<Mint, bigint>();
    const estimates = await Promise.allSettled(mints.map((mint) => terms.gasLimit(mint)));
    for (const [index, mint] of mints.entries()) {
      const estimate = estimates[index];
      if (estimate?.status === 'fulfilled') limits.set(mint, estimate.value);
      else if ((await orDefer(mint, judgeEstimate(mint, estimate?.reason))) === false) throw estimate?.reason;
    }
    return limits;
  }

  /**
   * Handles a failed gas estimate; false when the node could not be asked, which says nothing about this
   * mint.
   */
  async function judgeEstimate(mint: Mint, cause: unknown): Promise<boolean> {
    // A local chain that was just started gets its registry some seconds later.
    const mayGetRegistry = ++mint.deferrals * MISSING_PAUSE_MS <= timing.registryMs;
    const isMissing = cause instanceof ChainError && cause.code === 'REGISTRY_MISSING';
    if (isMissing && mayGetRegistry) states.defer(mint, MISSING_PAUSE_MS);
    else if (isMissing) await giveUp(parts, mint, cause);
    else if (isReverted(cause)) await giveUp(parts, mint, simulationFailed(cause));
    else if (classifyRefusal(cause) === 'no funds') await shortOfFunds(parts, mint, cause);
    else if (nodeErrorOf(cause) === undefined) return false;
    else if (mint.deferrals < MOST_DEFERRALS) states.defer(mint, REFUSED_PAUSE_MS);
    else await giveUp(parts, mint, notSent(cause));
    return true;
  }

  async function sign(limits: ReadonlyMap<Mint, bigint>): Promise<void> {
    const { epoch } = nonces;
    const [fees, pending] = await Promise.all([terms.fees(), chain.count(wallet.address, 'pending')]);
    nonces.note(pending);
    const reserved = nonces.reserve(limits.size, pending, states.highestHeld());
    try {
      const mints = [...limits];
      // A remote signer is asked for all of them at once.
      const answers = await Promise.allSettled(
        mints.map(([mint, gasLimit], index) =>
          terms.sign(mint, { nonce: reserved[index] ?? 0, gasLimit, fees }),
        ),
      );
      const signed: PendingTransaction[] = [];
      for (const [index, answer] of answers.entries()) {
        const [mint] = mints[index] ?? [];
        // A later transaction would wait for this nonce. It was never sent, and is forgotten.
        if (mint === undefined || answer.status === 'rejected') break;
        mint.transactions.push(answer.value);
        signed.push(new PendingTransaction(mint, [answer.value], time.elapsed()));
      }
      const isKept = signed.length === 0 || (await recorder.keep(signed.map(({ newest }) => newest)));
      if (epoch !== nonces.epoch) return;
      for (const nonce of reserved.slice(signed.length)) nonces.free(nonce);
      if (isKept) for (const transaction of signed) states.ready(transaction);
      for (const [index, answer] of answers.entries())
        if (answer.status === 'rejected') deferUnsigned(mints[index]?.[0], answer.reason);
    } finally {
      nonces.settle(reserved);
    }
  }

  /**
   * Defers a mint that the signer did not sign; the mints after it go on. It is signed again later, whatever
   * the signer did with the request: nothing was sent.
   */
  function deferUnsigned(mint: Mint | undefined, error: unknown): void {
    const isAway = error instanceof SignerError && error.code === 'SIGNER_UNREACHABLE';
    if (mint === undefined || isAway || !(error instanceof SignerError)) throw error;
    logger.warn({ tokenId: mint.tokenId, error }, 'mint deferred: it was not signed');
    states.defer(mint, timing.deferMs);
  }
}

function notSent(cause: unknown): ChainError {
  const message = `Nothing was sent, the mint could not be prepared: ${nodeErrorOf(cause)}`;
  return new ChainError('MINT_NOT_SENT', message, { cause, retryable: true });
}
