import { SignerError } from '../base/errors';
import { classifyRefusal, isDefinite, nodeErrorOf } from '../chain/node-errors';
import { broadcast, highestGasPrice, knows } from '../chain/transactions';
import { offerMore } from './handle-rejections';
import { heldBy, nonceOf, versionsOf } from './mint';
import type { QueuedMint, QueuedMints } from './queued-mints';
import { FIRST_PAUSE_MS } from './send-mints';

/** How often a transaction is replaced although its fees are high enough. */
const MOST_REPLACEMENTS = 5;
/** Before a signer that failed to sign a replacement is asked again. */
const UNSIGNED_PAUSE_MS = 15_000;

/**
 * Sends pending transactions again: those that no node acknowledged, those that nodes lost, and those that
 * are not mined in time.
 *
 * @returns a function that takes how many of the wallet's transactions are mined.
 */
export function createMintResending(mints: QueuedMints): (used: number) => Promise<void> {
  const { nonces, node, terms } = mints;
  const { client, logger, network, time, wallet } = mints.options;
  /** Between two checks whether the node still has the transaction with the lowest nonce. */
  const presenceMs = network.local ? 1_000 : Math.max(2 * network.blockTimeMs, 10_000);
  /** A transaction that is not mined within this time is replaced: five blocks, and a minute at least. */
  const replaceAfterMs = Math.max(5 * network.blockTimeMs, 60_000);
  /** When a signer last failed to sign a replacement, by `elapsed`. */
  let unsignedAt = -Infinity;
  /** When the node was last asked for the next transaction to be mined, by `elapsed`. */
  let presenceAt = time.elapsed();

  async function resend(used: number): Promise<void> {
    const now = time.elapsed();
    const waiting = mints.held('pending').filter(({ mint }) => nonceOf(mint) >= used);
    for (const queued of waiting) {
      const { attempts = 0, sentAt = now } = heldBy(queued.mint) ?? {};
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, presenceMs);
      if (attempts > 0 && now - sentAt >= pauseMs) mints.observe(queued, { saw: 'unsent' });
    }
    await findLost(waiting, used);
    await replaceOverdue(waiting);
  }

  /**
   * Checks now and then whether the node still has the next transaction to be mined. Lost transactions are
   * sent again with the same bytes: nodes forget pending ones when they restart, when their pool is full, and
   * on command.
   */
  async function findLost(waiting: readonly QueuedMint[], used: number): Promise<void> {
    const [next] = waiting;
    const held = next && heldBy(next.mint);
    const now = time.elapsed();
    if (next === undefined || held === undefined || now - Math.max(held.sentAt, presenceAt) < presenceMs)
      return;
    presenceAt = now;
    if (held.nonce > used) await findHole(held.nonce);
    if (await isKnown(next)) return;
    for (const queued of waiting) {
      const isLost = queued === next || !(await isKnown(queued));
      const newest = versionsOf(queued.mint).at(-1);
      if (!isLost || queued.mint.state.name !== 'pending' || newest === undefined) continue;
      const { tokenId, nonce, hash: txHash } = newest;
      logger.warn({ tokenId, nonce, txHash }, 'mint sent again: the node has lost it');
      mints.observe(queued, { saw: 'unsent' });
    }
  }

  async function isKnown({ mint }: QueuedMint): Promise<boolean> {
    const known = await Promise.all(versionsOf(mint).map(({ hash }) => knows(client, hash)));
    return known.includes(true);
  }

  /**
   * The transaction waits for a lower nonce that the queue does not hold. The lower nonce is freed for
   * another mint, because perhaps no other process is about to use it.
   */
  async function findHole(nonce: number): Promise<void> {
    const pending = await node.count(wallet.address, 'pending');
    nonces.note(pending);
    if (pending >= nonce || pending < nonces.floor || mints.holderOf(pending) !== 'nobody') return;
    nonces.free(pending);
    mints.sleeps.preparing.wake();
  }

  /**
   * Replaces transactions that are not mined in time: same mint, same nonce, higher fees. Either version may
   * be mined. A transaction that offers less than the current fees is replaced every time. The next one to be
   * mined is replaced MOST_REPLACEMENTS times even if it offers enough; the ones behind it only wait for it.
   */
  async function replaceOverdue(waiting: readonly QueuedMint[]): Promise<void> {
    const now = time.elapsed();
    const overdue = waiting.filter(({ mint: { state } }) => {
      return state.name === 'pending' && now - Math.max(state.sentAt, nonces.roseAt) >= replaceAfterMs;
    });
    if (overdue.length === 0 || now - unsignedAt < UNSIGNED_PAUSE_MS) return;
    terms.forgetFees();
    const needed = highestGasPrice(await terms.fees());
    for (const [index, queued] of overdue.entries()) {
      const newest = versionsOf(queued.mint).at(-1);
      const isCheap = newest !== undefined && highestGasPrice(newest.fees) < needed;
      const mayRaise = index === 0 && (heldBy(queued.mint)?.replacements ?? 0) < MOST_REPLACEMENTS;
      if (isCheap || mayRaise) await replace(queued);
      // A signer that hangs must not hold up the following of the other mints again and again.
      if (unsignedAt >= now) return;
    }
  }

  async function replace(queued: QueuedMint): Promise<void> {
    const replaced = versionsOf(queued.mint).at(-1)?.hash;
    // The next replacement offers more than this one, even if this one is refused.
    const signed = await offerMore(mints, queued).catch((error: unknown) => {
      if (!(error instanceof SignerError)) throw error;
      const { tokenId, mint } = queued;
      logger.warn({ tokenId, nonce: nonceOf(mint), error }, 'mint not replaced: it was not signed');
      unsignedAt = time.elapsed();
    });
    if (!signed) return;
    const { tokenId, nonce, hash } = signed;
    mints.observe(queued, { saw: 'sent', at: time.elapsed() });
    const outcome = await broadcast(client, signed.raw);
    const cause = outcome.state === 'taken' ? undefined : outcome.cause;
    if (outcome.state === 'refused' && isDefinite(cause))
      mints.observe(queued, { saw: 'rejected', hash, reach: 'refused', isAttempt: false });
    const refusal = nodeErrorOf(cause);
    if (classifyRefusal(cause) === 'fee too low') terms.forgetFees(refusal);
    logger.warn(
      { tokenId, nonce, replaced, txHash: hash, outcome: outcome.state, refusal },
      'mint replaced with a higher fee: it was not mined in time',
    );
  }

  return resend;
}
