import { broadcast } from '../chain/broadcast';
import { handleRejections, type NotAcknowledged } from './handle-rejections';
import { newestOf, type PendingTransaction } from './mint';
import { pause } from '../base/pause';
import type { QueueParts } from './queue-parts';

const IDLE_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Sends ready transactions in the order of their nonces, several at a time if the node allows it. After one
 * that is not acknowledged, sending stops until all in flight are answered; then the rejections are handled.
 */
export async function sendMints(parts: QueueParts): Promise<void> {
  const { client, logger, states, stopping, width } = parts;

  const asleep = states.sleeps.sending;
  const underWay = new Set<Promise<void>>();
  const rejected: NotAcknowledged[] = [];
  let disturbed = 0;
  while (!stopping.aborted) {
    asleep.reset();
    if (rejected.length > 0 && underWay.size === 0) {
      const pauses = await handleRejections(parts, rejected.splice(0));
      if (pauses) await pause(Math.min(FIRST_PAUSE_MS * 2 ** disturbed++, LONGEST_PAUSE_MS), stopping);
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
    const newest = newestOf(pending);
    const wasTaken = newest.mayBeTaken;
    newest.mayBeTaken = true;
    newest.wasSent = true;
    pending.sentAt = performance.now();
    const outcome = await broadcast(client, newest.raw);
    if (outcome.state !== 'taken') return { pending, outcome, wasTaken };
    pending.attempts = 0;
    pending.mint.refusal = undefined;
    pending.mint.isUnfunded = false;
    if (states.stateOf(pending.mint) !== 'sending' || !states.isHeld(pending)) return undefined;
    const { mint, nonce } = pending;
    logger.debug({ tokenId: mint.issuance.tokenId, nonce, txHash: newest.hash }, 'mint submitted');
    states.pending(pending);
    if (width.minesAtOnce) states.sleeps.following.wake();
    return undefined;
  }
}
