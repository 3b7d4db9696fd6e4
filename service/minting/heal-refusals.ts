import type { Broadcast } from '../chain/broadcast';
import { classifyRefusal, type Refusal } from '../chain/classify-refusal';
import { nodeErrorOf } from '../chain/refusals';
import { ChainError, messageOf } from '../errors';
import { decideRefusal, type Healing } from './decide-refusal';
import { failUnlessMade } from './judge-estimate';
import {
  detach,
  free,
  holderOf,
  lowForMs,
  noteCount,
  putToReady,
  putToWaiting,
  raiseFloor,
  sendAgain,
  signAnew,
  type Lane,
} from './lane-state';
import { newestOf, type Flight } from './mint';
import { raiseFees } from './raise-fees';
import { realign } from './realign';
import { failMint } from './settle-mint';
import { shortOfFunds } from './short-of-funds';
import { keep, signMint } from './sign-mint';

/** Who waits for these to pass is not tried, however long it takes. */
const PASSES: readonly Refusal[] = ['busy', 'nonce held'];

/** A transaction that a node did not take. */
export interface NotTaken {
  flight: Flight;
  outcome: Exclude<Broadcast, { state: 'taken' }>;
}

/**
 * Does what is to be done about transactions that were not taken, the lowest nonce first.
 *
 * @returns whether nothing should be sent for a moment.
 */
export async function healRefusals(lane: Lane, notTaken: readonly NotTaken[]): Promise<boolean> {
  const inOrder = [...notTaken].sort((left, right) => left.flight.nonce - right.flight.nonce);
  // Held by the lane while one after the other is decided.
  for (const { flight } of inOrder) putToReady(lane, flight);
  let pauses = false;
  for (const { flight, outcome } of inOrder) {
    if (!lane.ready.includes(flight)) continue;
    if (outcome.state === 'open') {
      newestOf(flight).mayBeTaken = true;
      logAttempt(lane, flight, 'the node did not answer', outcome.cause);
      pauses = true;
      continue;
    }
    // One that has it would say so. Of another network's nodes, others may have it.
    if (lane.network.local) newestOf(flight).mayBeTaken = false;
    if (!PASSES.includes(classifyRefusal(outcome.cause))) flight.attempts++;
    pauses = (await healOne(lane, flight, outcome.cause)) || pauses;
  }
  return pauses;
}

/** Gives whether nothing should be sent for a moment. */
async function healOne(lane: Lane, flight: Flight, cause: unknown): Promise<boolean> {
  try {
    const pending = await lane.client.getTransactionCount(lane.wallet.address, 'pending');
    noteCount(lane, pending);
    const healing = decide(lane, flight, cause, pending);
    logAttempt(lane, flight, healing, cause);
    await heal(lane, flight, { healing, cause, pending });
    return flight.attempts > 1 || healing === 'send again later' || healing === 'fill hole';
  } catch (error) {
    logAttempt(lane, flight, 'the node cannot be asked', error);
    return true;
  }
}

function decide(lane: Lane, flight: Flight, cause: unknown, pending: number): Healing {
  const refusal = classifyRefusal(cause);
  if (refusal === 'nonce too high') lane.width.refused();
  return decideRefusal({
    refusal,
    nonce: flight.nonce,
    attempts: flight.attempts,
    estimates: flight.mint.estimates,
    pending,
    floor: lane.floor,
    isChainShorter: lowForMs(lane) >= lane.timing.patienceMs,
    pendingHolder: holderOf(lane, pending),
  });
}

/** The flight is ready to be sent again, unless what follows takes it away. */
async function heal(
  lane: Lane,
  flight: Flight,
  { healing, cause, pending }: { healing: Healing; cause: unknown; pending: number },
): Promise<void> {
  switch (healing) {
    case 'send again':
    case 'send again later':
      return;
    case 'sign anew':
      if (classifyRefusal(cause) === 'nonce too low') raiseFloor(lane, flight.nonce + 1);
      signAnew(lane, flight, 'somebody else used its nonce');
      // And those after it, as far as others have come.
      for (const ready of lane.ready)
        if (ready.nonce < pending && !newestOf(ready).mayBeTaken)
          signAnew(lane, ready, 'somebody else used its nonce');
      return;
    case 'send those before again':
      for (const before of [...lane.inFlight.values()])
        if (before.nonce < flight.nonce) sendAgain(lane, before);
      return;
    case 'fill hole':
      return free(lane, pending);
    case 'realign':
      return realign(lane, pending);
    case 'offer more':
      return offerMore(lane, flight, cause);
    case 'estimate anew':
      flight.mint.estimates++;
      lane.gas.forget();
      detach(lane, flight);
      free(lane, flight.nonce);
      return putToWaiting(lane, flight.mint);
    case 'wait for funds':
      detach(lane, flight);
      free(lane, flight.nonce);
      return shortOfFunds(lane, flight.mint, cause);
    case 'fail':
      return failUnlessMade(lane, flight.mint, rejected(cause));
  }
}

/** The same nonce, with what it takes now. */
async function offerMore(lane: Lane, flight: Flight, cause: unknown): Promise<void> {
  lane.fees.forget();
  const { nonce, gasLimit, fees: offered } = newestOf(flight);
  const fees = raiseFees(offered, await lane.fees.read());
  if (fees === undefined) return failMint(lane, flight.mint, rejected(cause));
  const signed = await signMint(lane, flight.mint, { nonce, gasLimit, fees });
  if (await keep(lane, [signed])) flight.versions.push(signed);
}

function logAttempt(lane: Lane, flight: Flight, healing: string, cause: unknown): void {
  const { tokenId } = flight.mint.issuance;
  const { nonce, attempts } = flight;
  const reason = nodeErrorOf(cause) ?? messageOf(cause);
  lane.logger.warn({ tokenId, nonce, attempts, reason }, `mint not taken: ${healing}`);
}

function rejected(cause: unknown): ChainError {
  const message = `The transaction was not accepted: ${nodeErrorOf(cause) ?? messageOf(cause)}`;
  return new ChainError('TRANSACTION_REJECTED', message, { cause });
}
