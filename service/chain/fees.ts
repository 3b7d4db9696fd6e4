import type { FeeData } from 'ethers';
import { ChainError } from '../base/errors';
import type { FeeSource } from './gas-station';
import type { GasPricing } from './networks';

/**
 * What a transaction offers for its gas, in wei, as the fields that ethers and JSON-RPC name so. `type`: of
 * EIP-2718.
 */
export type TransactionFees =
  { type: 2; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint } | { type: 0; gasPrice: bigint };

/** What reading fees needs. */
export interface FeeReading {
  gasPricing: GasPricing;
  /** The network's gas station, if it has one. */
  readStation: FeeSource | undefined;
  /** What the node estimates: ethers' `getFeeData`. */
  readNode: () => Promise<FeeData>;
  /** Told when the station fails and the node's estimate is used. */
  warn: (message: string, cause: unknown) => void;
}

/**
 * The fees of the next transaction. The gas station's come first (docs/specification.md 2.9): it
 * knows what gets a transaction mined on its network, where nodes often do not.
 *
 * @throws ChainError FEES_UNKNOWN (retryable) when the node has no gas price to tell; whatever else the node
 *   answers.
 */
export async function readFees({
  gasPricing,
  readStation,
  readNode,
  warn,
}: FeeReading): Promise<TransactionFees> {
  if (gasPricing === 'free') return { type: 0, gasPrice: 0n };
  if (gasPricing === 'eip-1559' && readStation !== undefined) {
    try {
      return { type: 2, ...(await readStation()) };
    } catch (cause) {
      warn("The gas station does not answer: the node's own estimate is used", cause);
    }
  }
  return estimatedFees(gasPricing, await readNode());
}

/** The most that a unit of gas may cost, in wei. */
export function highestGasPrice(fees: TransactionFees): bigint {
  return fees.type === 2 ? fees.maxFeePerGas : fees.gasPrice;
}

/** A node without a base fee prices gas the old way, whatever the table says. */
function estimatedFees(gasPricing: GasPricing, estimate: FeeData): TransactionFees {
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = estimate;
  const hasBaseFee = maxFeePerGas !== null && maxPriorityFeePerGas !== null;
  if (gasPricing === 'eip-1559' && hasBaseFee) return { type: 2, maxFeePerGas, maxPriorityFeePerGas };
  if (gasPrice !== null) return { type: 0, gasPrice };
  throw new ChainError('FEES_UNKNOWN', 'The node does not tell a gas price.', { retryable: true });
}
