import { formatEther, formatUnits } from 'ethers';
import { highestGasPrice, type TransactionFees } from '../../service/chain/fees';
import type { Network } from '../../service/chain/networks';
import { ConfigurationError } from '../../service/base/errors';

/** What a transaction, or several, may cost a wallet. `balance` in wei; `gas` is the estimate of the node. */
export interface TransactionCost {
  account: string;
  balance: bigint;
  gas: bigint;
  fees: TransactionFees;
}

/**
 * What a node's estimate may be short of: the state that it was made at may change until the transaction is
 * mined.
 */
const GAS_MARGIN_PERCENT = 20n;

/** The gas limit to send a transaction with, given the node's estimate. What is not used is not paid. */
export function gasLimitFor(gas: bigint): bigint {
  return gas + (gas * GAS_MARGIN_PERCENT) / 100n;
}

/**
 * The most that it may cost, in wei: what a node wants to see in the wallet before it takes the transaction.
 */
export function highestCost({ gas, fees }: TransactionCost): bigint {
  return gasLimitFor(gas) * highestGasPrice(fees);
}

/** Wallet, balance and cost, for people who are about to pay. */
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
 * Makes sure that the wallet can pay.
 *
 * @throws ConfigurationError WALLET_NOT_FUNDED with what is missing.
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

/** An amount of wei in the network's currency, with all of its digits. */
function amount(wei: bigint, { currency }: Network): string {
  return `${trimmed(formatEther(wei))} ${currency}`;
}

/** ethers writes whole numbers as "1.0". */
function trimmed(decimal: string): string {
  return decimal.replace(/\.0$/, '');
}
