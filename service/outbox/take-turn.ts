import type { Database } from '../database/database';
import { claimQueues, type Claim, type ClaimedQueue } from './claim-queues';
import { settleQueues, type SentTo, type Settlement } from './settle-queues';

/** The outcomes to record and the queues to claim. */
export interface Turn {
  settlements: readonly Settlement[];
  /** A limit of 0 claims nothing. */
  claim: Claim;
  /** Whether a queue may be due besides those of the settlements. */
  mayBeDue: boolean;
  /** The subscription as the sender knew it: when it was changed last, and the SHA-256 of its sink. */
  sentTo?: SentTo;
}

/**
 * Records outcomes and claims the next queues in one transaction, which channels share. It takes one disk
 * write, and a token's next events are claimed in the transaction that settles the previous ones.
 *
 * @returns the claimed queues, those that another process has claimed, and whether more queues may be due.
 */
export async function takeTurn(
  database: Database,
  { settlements, claim, mayBeDue, sentTo }: Turn,
): Promise<{ claimed: ClaimedQueue[]; lost: Settlement[]; mayBeDue: boolean }> {
  return database.transact(async (transaction) => {
    const { channel, limit, now } = claim;
    const { lost, areDue } =
      settlements.length === 0
        ? { lost: [], areDue: false }
        : await settleQueues(database, transaction, channel, settlements, { now, sentTo });
    if (limit === 0 || !(mayBeDue || areDue)) return { claimed: [], lost, mayBeDue: mayBeDue || areDue };
    const claimed = await claimQueues(database, transaction, claim);
    return { claimed, lost, mayBeDue: claimed.length === limit };
  });
}
