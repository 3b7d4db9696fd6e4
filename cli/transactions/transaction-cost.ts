import { formatEther, formatUnits } from 'ethers';
import { highestGasPrice, type TransactionFees } from '../../service/chain/fees';
import type { Network } from '../../service/chain/networks';
import { ConfigurationError } from '../../service/base/errors';

/**
 * The facts that decide what transactions may cost a wallet. `balance` in wei; `gas` is the node's estimate.
 */
export interface TransactionCost {
  account: string;
  balance: bigint;
  gas: bigint;
  fees: TransactionFees;
}

/** Margin over a node's estimate: the state may change between the estimate and the block. */
const GAS_MARGIN_PERCENT = 20n;

/** The gas limit for a transaction, given the node's estimate. Unused gas is not paid for. */
export function gasLimitFor(gas: bigint): bigint {
  return gas + (gas * GAS_MARGIN_PERCENT) / 100n;
}

/** The highest possible cost in wei. Nodes require this balance before they accept the transaction. */
export function highestCost({ gas, fees }: TransactionCost): bigint {
  return gasLimitFor(gas) * highestGasPrice(fees);
}

/** Wallet, balance and cost, shown before a payment. */
export function costLines(cost: TransactionCost, network: Network): string[] {
  const { account, balance, gas, fees } = cost;
  const price = `${trimmed(formatUnits(highestGasPrice(fees), 'gwei'))} gwei`;
  return [
    `wallet   ${account}`,
    `balance  ${amount(balance, network)}`,
    `cost     at most ${amount(highestCost(cost), network)} (about ${gas} gas at up to ${price})`,
  ];
}

/**
 * Checks that the wallet can pay.
 *
 * @throws ConfigurationError WALLET_NOT_FUNDED with the missing amount.
 */
export function requireFunds(cost: TransactionCost, network: Network): void {
  const needed = highestCost(cost);
  const missing = needed - cost.balance;
  if (missing <= 0n) return;
  const message =
    `The wallet ${cost.account} has ${amount(cost.balance, network)} on ${network.name}, ` +
    `and up to ${amount(needed, network)} are needed: ${amount(missing, network)} are missing.`;
  const remedy = `Send at least ${amount(missing, network)} to it. Nothing was sent.`;
  throw new ConfigurationError('WALLET_NOT_FUNDED', message, { remedy });
}

/** Formats wei in the network's currency, with all digits. */
function amount(wei: bigint, { currency }: Network): string {
  return `${trimmed(formatEther(wei))} ${currency}`;
}

/** ethers writes whole numbers as "1.0". */
function trimmed(decimal: string): string {
  return decimal.replace(/\.0$/, '');
}
