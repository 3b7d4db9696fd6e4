import { formatEther, formatUnits, HDNodeWallet, Mnemonic } from 'ethers';
import type { Time } from '../service/base/time';
import { ConfigurationError, messageOf } from '../service/base/errors';
import { secretMasker } from '../service/base/mask-secrets';
import {
  createGasStation,
  highestGasPrice,
  namedTip,
  readFees,
  withLeastTip,
  type FeeReading,
  type TransactionFees,
} from '../service/chain/transactions';
import type { Network } from '../service/chain/networks';
import { secretsOf } from '../service/config/secrets';
import { feeTermsOf, type Settings } from '../service/config/settings';
import { tell } from './answer';

// The checks before a command sends transactions, and what it shows about them. `npx hardhat deploy` shares
// them with the commands of the registry admin.

/**
 * The mnemonic of every Hardhat node. Its keys are public; bots take whatever they hold on a public chain
 * within seconds.
 */
const PUBLISHED_MNEMONIC = 'test test test test test test test test test test test junk';
const PUBLISHED_ACCOUNTS = 20;
const ACCOUNTS_PATH = "m/44'/60'/0'/0";

/**
 * Rejects wallets whose key is public.
 *
 * @throws ConfigurationError WALLET_KEY_PUBLISHED if it is one of Hardhat's development accounts and the
 *   network is not local.
 */
export function refusePublishedKey({ name, local }: Network, address: string): void {
  if (local || !isPublished(address)) return;
  const message = `The wallet has one of Hardhat's published development keys: not used on ${name}.`;
  throw new ConfigurationError('WALLET_KEY_PUBLISHED', message, {
    remedy: 'Anybody could mint in that registry and take its funds. Use a wallet of your own.',
  });
}

let publishedAddresses: string[] | undefined;

function isPublished(address: string): boolean {
  publishedAddresses ??= Array.from({ length: PUBLISHED_ACCOUNTS }, (_, n) => publishedWallet(n).address);
  return publishedAddresses.includes(address);
}

let publishedAccounts: HDNodeWallet | undefined;

/** The n-th account of every Hardhat node. */
export function publishedWallet(n: number): HDNodeWallet {
  // The steps from the phrase to the accounts take most of the time, and are the same for all.
  publishedAccounts ??= HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PUBLISHED_MNEMONIC), ACCOUNTS_PATH);
  return publishedAccounts.deriveChild(n);
}

/**
 * The fees for a command's transactions: those of the network's gas station, or the node's with a warning on
 * standard error.
 *
 * @throws the errors of readFees.
 */
export function readNetworkFees(
  time: Time,
  network: Network,
  settings: Settings,
  readNode: FeeReading['readNode'],
): Promise<TransactionFees> {
  const terms = feeTermsOf(network, settings);
  const mask = secretMasker(secretsOf(settings));
  return readFees({
    ...terms,
    readStation: terms.stationUrl === undefined ? undefined : createGasStation(terms.stationUrl, time),
    readNode,
    // Standard output may be JSON for a program.
    warn: (message, cause) => tell(`warning: ${message} (${mask(messageOf(cause))}).`),
  });
}

/** The fees that the refusal of these names, in the node's words. Undefined if it names no higher ones. */
export function feesAfter(refusal: string, offered: TransactionFees): TransactionFees | undefined {
  const fees = withLeastTip(offered, namedTip(refusal));
  if (fees === offered) return undefined;
  const tip = fees.type === 2 ? fees.maxPriorityFeePerGas : fees.gasPrice;
  tell(`warning: The node asks for a priority fee of ${formatUnits(tip, 'gwei')} gwei: it is offered.`);
  return fees;
}

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
export function amount(wei: bigint, { currency }: Network): string {
  return `${trimmed(formatEther(wei))} ${currency}`;
}

/** ethers writes whole numbers as "1.0". */
function trimmed(decimal: string): string {
  return decimal.replace(/\.0$/, '');
}

/** The transaction's page on the network's explorer. Undefined for networks without one. */
export function transactionLink({ explorerUrl }: Network, hash: string): string | undefined {
  return explorerUrl && `${explorerUrl}/tx/${hash}`;
}

/** The page of a contract or wallet on the network's explorer. Undefined for networks without one. */
export function addressLink({ explorerUrl }: Network, address: string): string | undefined {
  return explorerUrl && `${explorerUrl}/address/${address}`;
}
