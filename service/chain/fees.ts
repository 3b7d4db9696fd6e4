import type { FeeData } from 'ethers';
import { ChainError } from '../base/errors';
import type { FeeSource } from './gas-station';
import type { GasPricing } from './networks';

/**
 * The gas price of a transaction in wei, in the fields of ethers and JSON-RPC. `type` is the transaction type
 * of EIP-2718.
 */
export type TransactionFees =
  { type: 2; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint } | { type: 0; gasPrice: bigint };

/** The sources of fees. */
export interface FeeReading {
  gasPricing: GasPricing;
  /** The network's gas station, if it has one. */
  readStation: FeeSource | undefined;
  /** The node's estimate: ethers' `getFeeData`. */
  readNode: () => Promise<FeeData>;
  /** Called when the gas station fails and the node's estimate is used. */
  warn: (message: string, cause: unknown) => void;
}

/**
 * The fees of the next transaction. The gas station is asked first (docs/specification.md 2.9): it knows the
 * fees that get a transaction mined on its network, which nodes often do not.
 *
 * @throws ChainError FEES_UNKNOWN (retryable) when the node has no gas price; also any other error of the
 *   node.
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
      warn("The gas station gives no usable fees: the node's own estimate is used", cause);
    }
  }
  return estimatedFees(gasPricing, await readNode());
}

/** The highest price per unit of gas, in wei. */
export function highestGasPrice(fees: TransactionFees): bigint {
  return fees.type === 2 ? fees.maxFeePerGas : fees.gasPrice;
}

/** A node without a base fee uses a legacy gas price, whatever the network table says. */
function estimatedFees(gasPricing: GasPricing, estimate: FeeData): TransactionFees {
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = estimate;
  const hasBaseFee = maxFeePerGas !== null && maxPriorityFeePerGas !== null;
  if (gasPricing === 'eip-1559' && hasBaseFee) return { type: 2, maxFeePerGas, maxPriorityFeePerGas };
  if (gasPrice !== null) return { type: 0, gasPrice };
  throw new ChainError('FEES_UNKNOWN', 'The node returns no gas price.', { retryable: true });
}
