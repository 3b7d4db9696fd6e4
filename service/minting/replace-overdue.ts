import { broadcast } from '../chain/broadcast';
import { highestGasPrice } from '../chain/fees';
import { nodeErrorOf } from '../chain/refusals';
import type { Lane } from './lane-state';
import { newestOf, type Flight } from './mint';
import { raiseFees } from './raise-fees';
import { keep, signMint } from './sign-mint';

/**
 * Replaces what is not mined in time by the same mint with the same nonce and higher fees; either may be mined. What offers less than it takes now, as
 * often as that is so; and the one that is to be mined next, some times: of those that wait for it, waiting is not their fault.
 */
export async function replaceOverdue(lane: Lane): Promise<void> {
  const now = performance.now();
  const isOverdue = ({ nonce, sentAt }: Flight): boolean =>
    nonce >= lane.floor && now - Math.max(sentAt, lane.progressAt) >= lane.timing.replaceAfterMs;
  const overdue = [...lane.inFlight.values()]
    .filter(isOverdue)
    .sort((left, right) => left.nonce - right.nonce);
  if (overdue.length === 0) return;
  lane.fees.forget();
  const needed = highestGasPrice(await lane.fees.read());
  for (const [index, flight] of overdue.entries())
    if (highestGasPrice(newestOf(flight).fees) < needed) await replace(lane, flight);
    else if (index === 0 && flight.replacements < lane.mostReplacements) await replace(lane, flight);
}

async function replace(lane: Lane, flight: Flight): Promise<void> {
  const { nonce, gasLimit, fees: offered, hash } = newestOf(flight);
  const fees = raiseFees(offered, await lane.fees.read());
  if (fees === undefined) return;
  flight.replacements++;
  const signed = await signMint(lane, flight.mint, { nonce, gasLimit, fees });
  if (!(await keep(lane, [signed]))) return;
  // The next offers more than this, also when this is refused.
  flight.versions.push(signed);
  flight.sentAt = performance.now();
  const outcome = await broadcast(lane.client, signed.raw);
  signed.mayBeTaken = outcome.state !== 'refused';
  const refusal = outcome.state === 'taken' ? undefined : nodeErrorOf(outcome.cause);
  const { tokenId } = flight.mint.issuance;
  lane.logger.warn(
    { tokenId, nonce, replaced: hash, txHash: signed.hash, outcome: outcome.state, refusal },
    'mint replaced with a higher fee: it was not mined in time',
  );
}
