import { broadcast } from '../chain/broadcast';
import { handleRejections, type NotAcknowledged } from './handle-rejections';
import { newestOf, type PendingTransaction } from './mint';
import { pause, type QueueParts } from './queue-parts';

const IDLE_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Sends what is ready in the order of nonces, as many together as the node lets. Once one is not acknowledged, no more are sent until those under way
 * are answered; then the rejections are handled.
 */
export class MintSending {
  readonly #parts: QueueParts;

  constructor(parts: QueueParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { states, width, stopping } = this.#parts;
    const asleep = states.sleeps.sending;
    const underWay = new Set<Promise<void>>();
    const rejected: NotAcknowledged[] = [];
    let disturbed = 0;
    while (!stopping.aborted) {
      asleep.reset();
      if (rejected.length > 0 && underWay.size === 0) {
        const pauses = await handleRejections(this.#parts, rejected.splice(0));
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
      const sending = this.#send(pending).then((notAcknowledged) => {
        underWay.delete(sending);
        if (notAcknowledged === undefined) disturbed = 0;
        else rejected.push(notAcknowledged);
        asleep.wake();
      });
      underWay.add(sending);
    }
    await Promise.all(underWay);
  }

  /** Undefined: a node has it. */
  async #send(pending: PendingTransaction): Promise<NotAcknowledged | undefined> {
    const { client, states, width, logger } = this.#parts;
    const newest = newestOf(pending);
    const wasTaken = newest.mayBeTaken;
    newest.mayBeTaken = true;
    pending.sentAt = performance.now();
    const outcome = await broadcast(client, newest.raw);
    if (outcome.state !== 'taken') return { pending, outcome, wasTaken };
    pending.attempts = 0;
    if (states.stateOf(pending.mint) !== 'sending') return undefined;
    const { mint, nonce } = pending;
    logger.info({ tokenId: mint.issuance.tokenId, nonce, txHash: newest.hash }, 'mint submitted');
    states.pending(pending);
    width.taken();
    if (width.minesAtOnce) states.sleeps.following.wake();
    return undefined;
  }
}

/** More would gain nothing: a node works on a few requests at a time. */
const WIDEST = 16;
/** After which a node that refused is tried again. */
const NARROW_FOR_MS = 60_000;

/**
 * How many transactions may be under way to the node together, before it has acknowledged any of them: one after the other at first. A node that does
 * not mine at once lets transactions wait for those before them, in whatever order they come: then one more may be under way with each that
 * it takes. One that mines at once refuses what comes too early.
 */
export class BroadcastWidth {
  /** Whether what a node takes is mined when it says so. */
  minesAtOnce: boolean;
  readonly #isKnownToWait: boolean;
  #width = 1;
  #mayGrow: boolean;
  #narrowUntil = -Infinity;

  /** `isKnownToWait`: the chain's nodes are known to let transactions wait. */
  constructor(isKnownToWait: boolean) {
    this.#isKnownToWait = isKnownToWait;
    this.#mayGrow = isKnownToWait;
    this.minesAtOnce = !isKnownToWait;
  }

  now(): number {
    return this.#width;
  }

  /** A node took a transaction. */
  taken(): void {
    if (this.#mayGrow && performance.now() >= this.#narrowUntil)
      this.#width = Math.min(this.#width + 1, WIDEST);
  }

  /** Whether the node had mined all that it had taken when it was asked afterwards. */
  looked(isAllMined: boolean): void {
    this.#mayGrow ||= !isAllMined;
    this.minesAtOnce = !this.#isKnownToWait && isAllMined;
  }

  /** The node refused a transaction because the one before it had not come yet. */
  refused(): void {
    this.#width = 1;
    this.#mayGrow = this.#isKnownToWait;
    this.#narrowUntil = performance.now() + NARROW_FOR_MS;
  }
}
