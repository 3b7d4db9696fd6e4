import { ChainError, SignerError } from '../base/errors';
import { pause } from '../base/time';
import { classifyRefusal, isReverted, nodeErrorOf } from '../chain/node-errors';
import { highestGasPrice } from '../chain/transactions';
import { simulationFailed } from '../registry/simulate-mint';
import { giveUp, shortOfFunds } from './handle-rejections';
import { lastSignedBy, nonceOf, type SignedMint, versionsOf } from './mint';
import type { QueuedMint, QueuedMints } from './queued-mints';

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
/** How long a chain without the registry counts as being set up. */
const REGISTRY_MS = 15_000;
const UNSIGNED_PAUSE_MS = 15_000;

/** A mint, with the nonce, gas limit and fees that it is signed with. */
interface Assigned extends Pick<SignedMint, 'nonce' | 'gasLimit' | 'fees'> {
  queued: QueuedMint;
}

/**
 * Prepares waiting mints in batches, while earlier ones are being sent: assigns nonces, signs, and
 * commits the transactions to the journal.
 *
 * @returns the turn, which returns milliseconds until a mint is due, or 0 when there may be more to prepare.
 */
export function createMintPreparing(mints: QueuedMints): () => Promise<number> {
  const { node, nonces, patienceMs, stopping, terms } = mints;
  const { logger, time, wallet } = mints.options;
  const from = wallet.address;

  async function turn(): Promise<number> {
    const hole = nonces.lowestFreed();
    if (hole === undefined && mints.in('ready').length >= FEWEST_READY) return IDLE_MS;
    const waiting = mints.waiting();
    const due = waiting.filter(({ dueMs }) => dueMs <= 0);
    if (due.length === 0) {
      if (hole !== undefined) fill(hole);
      return Math.min(IDLE_MS, ...waiting.map(({ dueMs }) => dueMs));
    }
    const batch = due.slice(0, BATCH).map(({ queued }) => queued);
    try {
      const assigned = await assign(batch);
      // A remote signer is asked for all of them at once.
      const signed = await Promise.allSettled(assigned.map((one) => terms.sign(one.queued.mint, one)));
      await commit(assigned, signed);
    } catch (error) {
      const isOfSigner = error instanceof SignerError;
      const whom = isOfSigner ? "the wallet's signer" : 'the node';
      logger.warn({ error, mints: batch.length }, `mints wait: ${whom} cannot be asked`);
      await pause(time, isOfSigner ? SIGNER_PAUSE_MS : NODE_PAUSE_MS, stopping);
    }
    return 0;
  }

  /** Signs the mint with the highest nonce again with one that was taken back: no mint waits for it. */
  function fill(hole: number): void {
    const last = mints.held('ready', 'pending').at(-1);
    const newest = last && versionsOf(last.mint).at(-1);
    if (last === undefined || newest === undefined || newest.nonce < hole) return;
    mints.observe(last, { saw: 'no nonce' });
    if (newest.reach !== 'possible') nonces.free(newest.nonce);
  }

  /** Defers a mint if the node cannot answer for it; the others go on. */
  async function orDefer<T>(queued: QueuedMint, work: Promise<T>): Promise<T | undefined> {
    return work.catch((error: unknown) => {
      queued.logger.warn({ error }, 'mint deferred: the node cannot be asked about it');
      mints.defer(queued, NODE_PAUSE_MS);
      return undefined;
    });
  }

  /**
   * Looks up a mint that was signed before. Its transaction may be mined by now, whatever a node said then. A
   * refused mint whose transactions cannot be mined any more has failed.
   */
  async function lookUp(queued: QueuedMint): Promise<void> {
    const mined = await node.findMint(queued.mint);
    if (mined !== undefined) return mints.found(queued, mined);
    const { refusal } = queued.mint;
    if (refusal !== undefined) await giveUp(mints, queued, refusal);
    if (refusal !== undefined || queued.mint.isUnfunded) await sendRefusedAgain(queued);
  }

  /**
   * Sends the same bytes again while their nonce is unused: a mint that is refused for days must not be
   * signed at every attempt. It is signed anew once the nonce is used at depth, and when the wallet could not
   * pay and fees are less than half of what it offers: the wallet may be able to pay now.
   */
  async function sendRefusedAgain(queued: QueuedMint): Promise<void> {
    const last = lastSignedBy(from, queued.mint);
    if (last === undefined) return;
    const { nonce, fees } = last;
    mints.defer(queued, patienceMs);
    const areFeesLower =
      queued.mint.isUnfunded && highestGasPrice(await terms.fees()) * 2n < highestGasPrice(fees);
    if ((await node.count(from, 'latest')) > nonce) {
      if ((await node.finalUseOf(from, nonce)) === undefined) return;
    } else if (mints.holderOf(nonce) !== 'nobody') {
      return;
    } else if (areFeesLower) {
      nonces.free(nonce);
    } else {
      nonces.take(nonce);
      mints.observe(queued, { saw: 'sendable', from, nonce, at: time.elapsed() });
      return;
    }
    mints.observe(queued, { saw: 'nothing in its way' });
  }

  /** Gives nonces to the mints that can be sent now. The others are deferred or given up. */
  async function assign(batch: readonly QueuedMint[]): Promise<Assigned[]> {
    const limits = await Promise.allSettled(batch.map(withGasLimit));
    const failed = limits.find((limit) => limit.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const able = limits.flatMap((limit) => (limit.status === 'fulfilled' && limit.value) || []);
    if (able.length === 0) return [];
    const [fees, pending] = await Promise.all([terms.fees(), node.count(from, 'pending')]);
    nonces.note(pending);
    const last = mints.held().at(-1);
    const reserved = nonces.reserve(able.length, pending, last && nonceOf(last.mint));
    return able.map((one, index) => ({ ...one, nonce: reserved[index] ?? 0, fees }));
  }

  /**
   * A mint with its gas limit; undefined when it is deferred, given up, or turns out to be sent or mined.
   *
   * @throws the error of a node that could not be asked, which says nothing about this mint.
   */
  async function withGasLimit(
    queued: QueuedMint,
  ): Promise<Pick<Assigned, 'queued' | 'gasLimit'> | undefined> {
    const { state, transactions } = queued.mint;
    if (transactions.length > 0) await orDefer(queued, lookUp(queued));
    if (queued.mint.state !== state) return undefined;
    try {
      return { queued, gasLimit: await terms.gasLimit(queued.mint) };
    } catch (cause) {
      if ((await orDefer(queued, judgeEstimate(queued, cause))) === false) throw cause;
      return undefined;
    }
  }

  /**
   * Handles a failed gas estimate; false when the node could not be asked, which says nothing about this
   * mint.
   */
  async function judgeEstimate(queued: QueuedMint, cause: unknown): Promise<boolean> {
    const isMissing = cause instanceof ChainError && cause.code === 'REGISTRY_MISSING';
    const isAnswered = isMissing || isReverted(cause) || nodeErrorOf(cause) !== undefined;
    if (!isAnswered) return false;
    mints.observe(queued, { saw: 'not estimated' });
    const { deferrals } = queued.mint;
    // A local chain that was just started gets its registry some seconds later.
    if (isMissing && deferrals * MISSING_PAUSE_MS <= REGISTRY_MS) mints.defer(queued, MISSING_PAUSE_MS);
    else if (isMissing) await giveUp(mints, queued, cause);
    else if (isReverted(cause)) await giveUp(mints, queued, simulationFailed(cause));
    else if (classifyRefusal(cause) === 'no funds') await shortOfFunds(mints, queued, cause);
    else if (deferrals < MOST_DEFERRALS) mints.defer(queued, REFUSED_PAUSE_MS);
    else await giveUp(mints, queued, notSent(cause));
    return true;
  }

  /** Keeps the transactions in the journal, and lets them be sent. */
  async function commit(
    assigned: readonly Assigned[],
    answers: readonly PromiseSettledResult<SignedMint>[],
  ): Promise<void> {
    const transactions: SignedMint[] = [];
    for (const [index, { queued }] of assigned.entries()) {
      const answer = answers[index];
      // A later transaction would wait for this nonce. It was never sent, and is forgotten.
      if (answer?.status !== 'fulfilled') break;
      mints.observe(queued, { saw: 'signed', transaction: answer.value });
      transactions.push(answer.value);
    }
    const [signed, unsigned] = [assigned.slice(0, transactions.length), assigned.slice(transactions.length)];
    await mints.persist((journal) => journal.keepTransactions(transactions));
    // Otherwise all nonces were forgotten meanwhile, because the chain is another one.
    if (!assigned.every(({ nonce }) => nonces.isReserved(nonce))) return;
    nonces.settle(assigned.map(({ nonce }) => nonce));
    for (const { nonce } of unsigned) nonces.free(nonce);
    const at = time.elapsed();
    // A queue that stops may not have kept them.
    for (const { queued, nonce } of stopping.aborted ? [] : signed)
      mints.observe(queued, { saw: 'sendable', from, nonce, at });
    for (const [index, { queued }] of assigned.entries()) {
      const answer = answers[index];
      if (answer?.status === 'rejected') deferUnsigned(queued, answer.reason);
    }
  }

  /**
   * Defers a mint that the signer did not sign; the mints after it go on. It is signed again later, whatever
   * the signer did with the request: nothing was sent.
   */
  function deferUnsigned(queued: QueuedMint, error: unknown): void {
    if (!(error instanceof SignerError) || error.code === 'SIGNER_UNREACHABLE') throw error;
    queued.logger.warn({ error }, 'mint deferred: it was not signed');
    mints.defer(queued, UNSIGNED_PAUSE_MS);
  }

  return turn;
}

function notSent(cause: unknown): ChainError {
  const message = `Nothing was sent, the mint could not be prepared: ${nodeErrorOf(cause)}`;
  return new ChainError('MINT_NOT_SENT', message, { cause });
}
