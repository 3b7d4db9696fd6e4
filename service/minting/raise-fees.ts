import { highestGasPrice, type TransactionFees } from '../chain/fees';

/** What a replacement must offer more, in eighths: nodes ask for a tenth or an eighth. */
const EIGHTHS_MORE = 1n;

/**
 * The fees of a transaction that takes the place of one that is not mined: each at least an eighth higher, which is what nodes ask for, and at
 * least what it takes now.
 *
 * @returns undefined where gas is free: no fee would make a difference.
 */
export function raiseFees(offered: TransactionFees, now: TransactionFees): TransactionFees | undefined {
  if (highestGasPrice(offered) === 0n && highestGasPrice(now) === 0n) return undefined;
  if (offered.type === 0 && now.type === 0)
    return { type: 0, gasPrice: highest(raised(offered.gasPrice), now.gasPrice) };
  const before = priorityOf(offered);
  const maxPriorityFeePerGas = highest(raised(before), priorityOf(now));
  const maxFeePerGas = highest(raised(highestGasPrice(offered)), highestGasPrice(now), maxPriorityFeePerGas);
  return { type: 2, maxFeePerGas, maxPriorityFeePerGas };
}

/** A transaction of the old kind offers all of its price to whoever mines it. */
function priorityOf(fees: TransactionFees): bigint {
  return fees.type === 2 ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

/** Rounded up: a wei less is refused; so is what offers no more than before, be it nothing. */
function raised(fee: bigint): bigint {
  return fee + highest((fee * EIGHTHS_MORE + 7n) / 8n, 1n);
}

function highest(...fees: bigint[]): bigint {
  return fees.reduce((most, fee) => (fee > most ? fee : most));
}
