import type { Database } from '../database/database';
import { claimDeliveries, type Claim, type ClaimedDelivery } from './claim-deliveries';
import { settleDeliveries, type Settlement } from './settle-deliveries';

/** The outcomes to record and the deliveries to claim. */
export interface Turn {
  settlements: readonly Settlement[];
  /** A limit of 0 claims nothing. */
  claim: Claim;
}

/**
 * Records outcomes and claims the next deliveries in one transaction. This takes one disk write, and a
 * token's next event is claimed in the transaction that settles the previous one.
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
