import type { Database } from '../database/database';
import { claimQueues, type Claim, type ClaimedQueue } from './claim-queues';
import { settleQueues, type Settlement } from './settle-queues';

/** The outcomes to record and the queues to claim. */
export interface Turn {
  settlements: readonly Settlement[];
  /** A limit of 0 claims nothing. */
  claim: Claim;
}

/**
 * Records outcomes and claims the next queues in one transaction, which the channels share: it takes one disk
 * write, and a token's next events are claimed in the transaction that settles the previous ones.
 */
export async function takeTurn(
  database: Database,
  { settlements, claim }: Turn,
): Promise<{ claimed: ClaimedQueue[]; lost: Settlement[] }> {
  return database.transact(async (transaction) => {
    const { channel, limit, now } = claim;
    const lost =
      settlements.length === 0 ? [] : await settleQueues(database, transaction, channel, settlements, now);
    const claimed = limit === 0 ? [] : await claimQueues(database, transaction, claim);
    return { claimed, lost };
  });
}
