import { detach, putToWaiting, type Lane } from './lane-state';

/** Gives all nonces anew, from the node's count on: the chain, or what waited for it, is gone. */
export function realign(lane: Lane, count: number): void {
  lane.logger.warn(
    { from: lane.floor, to: count },
    'the node counts fewer transactions than before: nonces are given anew',
  );
  lane.epoch++;
  lane.floor = count;
  lane.lowSince = undefined;
  lane.progressAt = performance.now();
  lane.freed.clear();
  lane.gas.forget();
  lane.fees.forget();
  for (const flight of [...lane.ready, ...lane.inFlight.values()]) {
    detach(lane, flight);
    putToWaiting(lane, flight.mint);
  }
  // A local chain begins anew when its node does. Another is the same chain, whatever a node says: what was sent may be mined there.
  if (lane.network.local)
    for (const { transactions } of lane.mints.values())
      for (const transaction of transactions) transaction.mayBeTaken = false;
}
