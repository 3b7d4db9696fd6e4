import { broadcast, highestGasPrice, knows } from '../chain/transactions';
import { classifyRefusal, isDefinite, nodeErrorOf } from '../chain/node-errors';
import { handleRejections, type NotAcknowledged, offerMore } from './handle-rejections';
import { type PendingTransaction } from './mint';
import { SignerError } from '../base/errors';
import { pause } from '../base/time';
import type { QueueParts } from './queue-parts';

const IDLE_MS = 60_000;
/** Before a transaction that was not acknowledged is sent again; doubled each time. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Sends ready transactions in the order of their nonces, several at a time if the node allows it. After one
 * that is not acknowledged, sending stops until all in flight are answered; then the rejections are handled.
 */
export async function sendMints(parts: QueueParts): Promise<void> {
  const { client, logger, states, stopping, time, width } = parts;

  const asleep = states.sleeps.sending;
  const underWay = new Set<Promise<void>>();
  const rejected: NotAcknowledged[] = [];
  let disturbed = 0;
  while (!stopping.aborted) {
    asleep.reset();
    if (rejected.length > 0 && underWay.size === 0) {
      const pauses = await handleRejections(parts, rejected.splice(0));
      if (pauses) await pause(time, Math.min(FIRST_PAUSE_MS * 2 ** disturbed++, LONGEST_PAUSE_MS), stopping);
      continue;
    }
    const isFree = rejected.length === 0 && underWay.size < width.now();
    const pending = isFree ? states.takeReady() : undefined;
    if (pending === undefined) {
      await asleep.sleep(IDLE_MS);
      continue;
    }
    states.sleeps.preparing.wake();
    const sending = send(pending).then((notAcknowledged) => {
      underWay.delete(sending);
      if (notAcknowledged === undefined) disturbed = 0;
      else rejected.push(notAcknowledged);
      asleep.wake();
    });
    underWay.add(sending);
  }
  await Promise.all(underWay);

  /** Sends a transaction; undefined when a node has it. */
  async function send(pending: PendingTransaction): Promise<NotAcknowledged | undefined> {
    const newest = pending.newest;
    const wasTaken = newest.mayBeTaken;
    newest.mayBeTaken = true;
    newest.wasSent = true;
    pending.sentAt = time.elapsed();
    const outcome = await broadcast(client, newest.raw);
    if (outcome.state !== 'taken') return { pending, outcome, wasTaken };
    pending.attempts = 0;
    pending.lastRefusal = undefined;
    pending.mint.refusal = undefined;
    pending.mint.isUnfunded = false;
    if (states.stateOf(pending.mint) !== 'sending' || !states.isHeld(pending)) return undefined;
    const { mint, nonce } = pending;
    logger.debug({ tokenId: mint.tokenId, nonce, txHash: newest.hash }, 'mint submitted');
    states.pending(pending);
    if (width.minesAtOnce) states.sleeps.following.wake();
    return undefined;
  }
}

/**
 * Sends pending transactions again: those that no node acknowledged, those that nodes lost, and those that
 * are not mined in time.
 *
 * @returns a function that takes all pending transactions in the order of nonces, and how many of the
 *   wallet's transactions are mined.
 */
export function createMintResending(
  parts: QueueParts,
): (all: readonly PendingTransaction[], used: number) => Promise<void> {
  const { chain, client, logger, nonces, states, terms, time, timing, wallet } = parts;
  /** When a signer last failed to sign a replacement, by `elapsed`. */
  let unsignedAt = -Infinity;
  /** When the node was last asked for the next transaction to be mined, by `elapsed`. */
  let presenceAt = time.elapsed();

  async function resend(all: readonly PendingTransaction[], used: number): Promise<void> {
    const now = time.elapsed();
    const waiting = all.filter(({ nonce }) => nonce >= used);
    for (const pending of waiting) {
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** pending.attempts, timing.presenceMs);
      if (pending.attempts > 0 && now - pending.sentAt >= pauseMs) states.ready(pending);
    }
    await findLost(waiting, used);
    await replaceOverdue(waiting);
  }

  /**
   * Checks now and then whether the node still has the next transaction to be mined. Lost transactions are
   * sent again with the same bytes: nodes forget pending ones when they restart, when their pool is full, and
   * on command.
   */
  async function findLost(waiting: readonly PendingTransaction[], used: number): Promise<void> {
    const [next] = waiting;
    const now = time.elapsed();
    if (next === undefined || now - Math.max(next.sentAt, presenceAt) < timing.presenceMs) return;
    presenceAt = now;
    if (next.nonce > used) await findHole(next);
    if (await isKnown(next)) return;
    for (const pending of waiting) {
      const isLost = pending === next || !(await isKnown(pending));
      if (!isLost || states.stateOf(pending.mint) !== 'pending') continue;
      const { tokenId, nonce, hash: txHash } = pending.newest;
      logger.warn({ tokenId, nonce, txHash }, 'mint sent again: the node has lost it');
      states.ready(pending);
    }
  }

  async function isKnown({ versions }: PendingTransaction): Promise<boolean> {
    const known = await Promise.all(versions.map(({ hash }) => knows(client, hash)));
    return known.includes(true);
  }

  /**
   * The transaction waits for a lower nonce that the queue does not hold. The lower nonce is freed for
   * another mint, because perhaps no other process is about to use it.
   */
  async function findHole({ nonce }: PendingTransaction): Promise<void> {
    const pending = await chain.count(wallet.address, 'pending');
    nonces.note(pending);
    if (pending >= nonce || pending < nonces.floor || states.holderOf(pending) !== 'nobody') return;
    nonces.free(pending);
    states.sleeps.preparing.wake();
  }

  /**
   * Replaces transactions that are not mined in time: same mint, same nonce, higher fees. Either version may
   * be mined. A transaction that offers less than the current fees is replaced every time. The next one to be
   * mined is replaced `mostReplacements` times even if it offers enough; the ones behind it only wait for it.
   */
  async function replaceOverdue(waiting: readonly PendingTransaction[]): Promise<void> {
    const now = time.elapsed();
    const overdue = waiting.filter(
      ({ sentAt, mint }) =>
        states.stateOf(mint) === 'pending' && now - Math.max(sentAt, nonces.roseAt) >= timing.replaceAfterMs,
    );
    if (overdue.length === 0 || now - unsignedAt < timing.deferMs) return;
    terms.forgetFees();
    const needed = highestGasPrice(await terms.fees());
    for (const [index, pending] of overdue.entries()) {
      const isCheap = highestGasPrice(pending.newest.fees) < needed;
      const mayRaise = index === 0 && pending.replacements < timing.mostReplacements;
      if (isCheap || mayRaise) await replace(pending);
      // A signer that hangs must not hold up the following of the other mints again and again.
      if (unsignedAt >= now) return;
    }
  }

  async function replace(pending: PendingTransaction): Promise<void> {
    const { nonce, hash: replaced } = pending.newest;
    // The next replacement offers more than this one, even if this one is refused.
    const signed = await offerMore(parts, pending).catch((error: unknown) => {
      if (!(error instanceof SignerError)) throw error;
      logger.warn({ tokenId: pending.mint.tokenId, nonce, error }, 'mint not replaced: it was not signed');
      unsignedAt = time.elapsed();
    });
    if (!signed) return;
    pending.replacements++;
    pending.sentAt = time.elapsed();
    signed.mayBeTaken = signed.wasSent = true;
    const outcome = await broadcast(client, signed.raw);
    if (outcome.state === 'refused' && isDefinite(outcome.cause)) signed.mayBeTaken = false;
    const cause = outcome.state === 'taken' ? undefined : outcome.cause;
    const refusal = nodeErrorOf(cause);
    if (classifyRefusal(cause) === 'fee too low') terms.forgetFees(refusal);
    const { tokenId } = signed;
    logger.warn(
      { tokenId, nonce, replaced, txHash: signed.hash, outcome: outcome.state, refusal },
      'mint replaced with a higher fee: it was not mined in time',
    );
  }

  return resend;
}
