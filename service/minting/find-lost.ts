import { knows } from '../chain/broadcast';
import { free, holderOf, noteCount, sendAgain, type Lane } from './lane-state';
import { newestOf, type Flight } from './mint';

/**
 * Looks now and then whether the node still has what is to be mined next. What it does not have is sent again, the same bytes: nodes forget what waits
 * when they restart, when there is too much of it, and when they are told to.
 *
 * @param used how many transactions of the wallet are mined.
 */
export async function findLost(lane: Lane, used: number): Promise<void> {
  const { presenceMs } = lane.timing;
  const flights = [...lane.inFlight.values()].sort((left, right) => left.nonce - right.nonce);
  const [next] = flights.filter(({ nonce }) => nonce >= used);
  const now = performance.now();
  if (next === undefined || now - next.sentAt < presenceMs) return;
  if (now - lane.presenceAt < presenceMs) return;
  lane.presenceAt = now;
  if (await isKnown(lane, next)) return next.nonce > used ? findHole(lane, next) : undefined;
  for (const flight of flights) {
    if (flight.nonce < used || (flight !== next && (await isKnown(lane, flight)))) continue;
    const { tokenId } = flight.mint.issuance;
    const { nonce } = flight;
    lane.logger.warn(
      { tokenId, nonce, txHash: newestOf(flight).hash },
      'mint sent again: the node has lost it',
    );
    sendAgain(lane, flight);
  }
}

async function isKnown(lane: Lane, { versions }: Flight): Promise<boolean> {
  const known = await Promise.all(versions.map(({ hash }) => knows(lane.client, hash)));
  return known.includes(true);
}

/** The node has it, and waits for one before it that the lane does not have: nobody may be about to send that. */
async function findHole(lane: Lane, { nonce }: Flight): Promise<void> {
  const pending = await lane.client.getTransactionCount(lane.wallet.address, 'pending');
  noteCount(lane, pending);
  if (pending < nonce && pending >= lane.floor && holderOf(lane, pending) === 'nobody') free(lane, pending);
}
