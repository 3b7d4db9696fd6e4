import type { Interface, TransactionReceipt, TransactionRequest } from 'ethers';
import { awaitReceipt } from '../../service/chain/await-receipt';
import { createNonceLane } from '../../service/chain/nonce-lane';
import { isReverted } from '../../service/chain/refusals';
import { ChainError } from '../../service/errors';
import { registryInterface } from '../../service/registry/abi';
import { readNetworkFees } from '../network-fees';
import { printable } from '../printable';
import { costLines, gasLimitFor, requireFunds } from '../transaction-cost';
import { explainRefusal, parseRevert, type RefusedCall } from './explain-refusal';
import type { Owner } from './owner';
import { Refusal } from './refusal';

/** A call of the registry. `doing`: in words, after "to". `beforeSending`: the last that may throw. */
export interface OwnerCall extends Omit<RefusedCall, 'flags'> {
  doing: string;
  method: string;
  args: readonly unknown[];
  beforeSending?: () => Promise<void>;
}

/** Typed by name, it would take one method only. */
const REGISTRY: Interface = registryInterface;
/** A transaction that is not mined by then is most likely lost, and so is the patience of whoever waits for it. */
const LONGEST_WAIT_MS = 10 * 60_000;
/** ethers tells the whole request and its answer. */
const LONGEST_REASON = 600;

/**
 * Simulates a call, makes sure that the wallet can pay for it, sends it and waits until it is mined.
 *
 * @throws Refusal REGISTRY_REFUSES when the simulation fails; ConfigurationError WALLET_NOT_FUNDED; ChainError TRANSACTION_REJECTED,
 *   TRANSACTION_REVERTED, or TRANSACTION_NOT_CONFIRMED, which alone leaves open what became of it.
 */
export async function sendCall(
  owner: Owner,
  call: OwnerCall,
  say: (line: string) => void,
): Promise<TransactionReceipt> {
  const { client, wallet, network, settings, address } = owner;
  const data = REGISTRY.encodeFunctionData(call.method, call.args);
  const transaction = { from: wallet.address, to: address, data };
  await simulate(owner, call, transaction);
  const [gas, fees, balance] = await Promise.all([
    client.estimateGas(transaction),
    readNetworkFees(network, settings, () => client.getFeeData()),
    client.getBalance(wallet.address),
  ]);
  const cost = { account: wallet.address, balance, gas, fees };
  if (!network.local) for (const line of costLines(cost, network)) say(line);
  requireFunds(cost, network);
  await call.beforeSending?.();
  const { chainId } = network;
  return send(owner, { ...transaction, chainId, gasLimit: gasLimitFor(gas), ...fees }, say);
}

async function simulate(
  { client, contract, flags }: Owner,
  call: OwnerCall,
  transaction: TransactionRequest,
): Promise<void> {
  try {
    await client.call(transaction);
  } catch (cause) {
    if (!isReverted(cause)) throw cause;
    const error = parseRevert(cause.data);
    const role: unknown =
      error?.name === 'AccessControlUnauthorizedAccount' ? error.args.getValue('neededRole') : undefined;
    const adminOf = typeof role === 'string' ? await contract.getRoleAdmin(role) : undefined;
    const remedy = explainRefusal(error, { ...call, flags, ...(adminOf !== undefined && { adminOf }) });
    const name = error?.name ?? 'no reason';
    const message = `The registry refuses to ${call.doing} (${name}). ${remedy} Nothing was sent.`;
    throw new Refusal('REGISTRY_REFUSES', message, { cause, remedy });
  }
}

async function send(
  { wallet, client }: Owner,
  transaction: TransactionRequest,
  say: (line: string) => void,
): Promise<TransactionReceipt> {
  try {
    const hash = await createNonceLane(wallet, client).submit(transaction);
    say(`sent     ${hash}`);
    return await awaitReceipt(client, hash, LONGEST_WAIT_MS);
  } catch (thrown) {
    throw ofTransaction(thrown);
  }
}

/** What the service says of its mints holds for any transaction; only the codes are theirs. */
function ofTransaction(cause: unknown): unknown {
  if (!(cause instanceof ChainError)) return cause;
  const message = printable(cause.message, LONGEST_REASON);
  if (cause.code === 'MINT_REVERTED') {
    const remedy = 'The registry changed after the simulation: run the command again.';
    return new ChainError('TRANSACTION_REVERTED', `${message} ${remedy}`, { cause, remedy });
  }
  if (cause.code !== 'MINT_NOT_CONFIRMED') return cause;
  const remedy = 'Look the transaction up before sending again.';
  return new ChainError('TRANSACTION_NOT_CONFIRMED', message, { cause, remedy });
}
