import type { Database } from '../database/database';
import { claimDeliveries, type Claim, type ClaimedDelivery } from './claim-deliveries';
import { settleDeliveries, type Settlement } from './settle-deliveries';

/** Outcomes to record and deliveries to claim. */
export interface Turn {
  settlements: readonly Settlement[];
  /** A limit of 0 claims nothing. */
  claim: Claim;
}

/**
 * Records what was delivered and claims what is next, in one transaction: one disk write for both, and a
 * token's next event is claimed in the very transaction that settles the one before it.
 */
export async function takeTurn(
  database: Database,
  { settlements, claim }: Turn,
): Promise<{ claimed: ClaimedDelivery[]; lost: Settlement[] }> {
  if (settlements.length === 0) {
    return { claimed: await claimDeliveries(database, database.db, claim), lost: [] };
  }
  return database.db.transaction().execute(async (transaction) => {
    const lost = await settleDeliveries(database, transaction, claim.feed, settlements, claim.now);
    const claimed = claim.limit === 0 ? [] : await claimDeliveries(database, transaction, claim);
    return { claimed, lost };
  });
}
