import { broadcast, type Broadcast } from '../chain/broadcast';
import { healRefusals, type NotTaken } from './heal-refusals';
import { pause, signAnew, type Lane } from './lane-state';
import { newestOf, type Flight } from './mint';

const IDLE_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Sends what is ready in the order of nonces, as many together as the node lets. Once one is not taken, no more are sent until those under way are
 * answered; then what stands in the way is healed.
 */
export async function sendMints(lane: Lane): Promise<void> {
  const asleep = lane.sleeps.sending;
  const underWay = new Set<Promise<void>>();
  let notTaken: NotTaken[] = [];
  let disturbed = 0;
  while (!lane.stopping.aborted) {
    asleep.reset();
    if (notTaken.length > 0 && underWay.size === 0) {
      const failed = notTaken.splice(0);
      const pauses = await healRefusals(lane, failed);
      if (pauses) await pause(lane, Math.min(FIRST_PAUSE_MS * 2 ** disturbed++, LONGEST_PAUSE_MS));
      continue;
    }
    const isFree = notTaken.length === 0 && underWay.size < lane.width.now();
    const flight = isFree ? lane.ready.shift() : undefined;
    if (flight === undefined) {
      await asleep.sleep(IDLE_MS);
      continue;
    }
    lane.sleeps.preparing.wake();
    const sending = send(lane, flight).then((outcome) => {
      underWay.delete(sending);
      if (outcome.state === 'taken') disturbed = 0;
      else notTaken = [...notTaken, { flight, outcome }];
      asleep.wake();
    });
    underWay.add(sending);
  }
  await Promise.all(underWay);
}

async function send(lane: Lane, flight: Flight): Promise<Broadcast> {
  lane.sending.add(flight);
  const outcome = await broadcast(lane.client, newestOf(flight).raw);
  lane.sending.delete(flight);
  if (outcome.state === 'taken') taken(lane, flight);
  return outcome;
}

/** A node has it: it is in flight from now on. */
function taken(lane: Lane, flight: Flight): void {
  const newest = newestOf(flight);
  newest.mayBeTaken = true;
  flight.sentAt = performance.now();
  flight.attempts = 0;
  if (flight.mint.isSettled) return;
  const { tokenId } = flight.mint.issuance;
  lane.logger.info({ tokenId, nonce: flight.nonce, txHash: newest.hash }, 'mint submitted');
  const other = lane.inFlight.get(flight.nonce);
  if (other !== undefined && other !== flight) signAnew(lane, other, 'another mint has its nonce');
  // One that lets them wait is looked at once a while.
  if (lane.minesAtOnce || lane.inFlight.size === 0) lane.sleeps.watching.wake();
  lane.inFlight.set(flight.nonce, flight);
  lane.width.taken();
}
