import { setTimeout as sleep } from 'node:timers/promises';
import { keccak256, type Interface, type TransactionReceipt, type TransactionRequest } from 'ethers';
import { broadcast } from '../../service/chain/broadcast';
import { classifyRefusal } from '../../service/chain/classify-refusal';
import { isReverted, nodeErrorOf } from '../../service/chain/refusals';
import type { RpcClient } from '../../service/chain/rpc-client';
import { ChainError, messageOf } from '../../service/base/errors';
import { registryInterface } from '../../service/registry/abi';
import { readNetworkFees } from '../transactions/network-fees';
import { printable } from '../terminal/printable';
import { costLines, gasLimitFor, requireFunds } from '../transactions/transaction-cost';
import { explainRefusal, parseRevert, type RefusedCall } from './explain-refusal';
import type { RegistryAdmin } from './registry-admin';
import { Refusal } from '../errors';

/**
 * A call of the registry. `doing`: the action in words, after "to". `beforeSending`: runs last before
 * sending, and may still throw.
 */
export interface AdminCall extends Omit<RefusedCall, 'flags'> {
  doing: string;
  method: string;
  args: readonly unknown[];
  beforeSending?: () => Promise<void>;
}

/** Untyped, because the method is chosen at run time. */
const REGISTRY: Interface = registryInterface;
/** A transaction that is not mined by then is most likely lost. */
const LONGEST_WAIT_MS = 10 * 60_000;
/** How often a transaction is signed, and how often the same bytes are sent, at most. */
const ATTEMPTS = 5;
const PAUSE_MS = 200;
/** Error messages of ethers contain the whole request and response. */
const LONGEST_REASON = 600;

/**
 * Simulates a call, checks that the wallet can pay for it, sends it and waits until it is mined.
 *
 * @throws Refusal REGISTRY_REFUSES if the simulation fails; ConfigurationError WALLET_NOT_FUNDED; ChainError
 *   TRANSACTION_REJECTED, TRANSACTION_REVERTED, or TRANSACTION_NOT_CONFIRMED, the only one after which the
 *   transaction may still be mined.
 */
export async function sendCall(
  admin: RegistryAdmin,
  call: AdminCall,
  say: (line: string) => void,
): Promise<TransactionReceipt> {
  const { client, wallet, network, settings, address } = admin;
  const data = REGISTRY.encodeFunctionData(call.method, call.args);
  const transaction = { from: wallet.address, to: address, data };
  await simulate(admin, call, transaction);
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
  const hash = await submit(admin, { ...transaction, chainId, gasLimit: gasLimitFor(gas), ...fees });
  say(`sent     ${hash}`);
  return awaitReceipt(client, hash);
}

async function simulate(
  { client, contract, flags }: RegistryAdmin,
  call: AdminCall,
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

/**
 * Signs with the next nonce and returns the hash once the node has accepted the transaction. If another
 * sender uses that nonce first, it is signed again.
 */
async function submit({ wallet, client }: RegistryAdmin, transaction: TransactionRequest): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const nonce = await client.getTransactionCount(wallet.address, 'pending');
    const raw = await wallet.signTransaction({ ...transaction, nonce });
    const outcome = await broadcast(client, raw);
    if (outcome.state === 'taken') return keccak256(raw);
    if (outcome.state === 'open') return submitAgain(client, raw);
    const { cause } = outcome;
    const isForNonce = classifyRefusal(cause).startsWith('nonce');
    if (!isForNonce || attempt === ATTEMPTS) {
      const message = `The transaction was not accepted: ${reasonOf(cause)}`;
      throw new ChainError('TRANSACTION_REJECTED', message, { cause, retryable: isForNonce });
    }
    await sleep(PAUSE_MS);
  }
}

/**
 * The node may have the transaction. Sending the same bytes again is safe; a new transaction could be mined
 * in addition.
 */
async function submitAgain(client: RpcClient, raw: string): Promise<string> {
  const hash = keccak256(raw);
  for (let attempt = 2; ; attempt++) {
    await sleep(PAUSE_MS);
    const outcome = await broadcast(client, raw);
    if (outcome.state === 'taken') return hash;
    if (outcome.state === 'refused' || attempt === ATTEMPTS) throw notConfirmed(hash, outcome.cause);
  }
}

/**
 * Polls until the transaction is mined. A failed poll is repeated. (ethers' `wait` would turn it into an
 * unhandled rejection.)
 */
async function awaitReceipt(client: RpcClient, hash: string): Promise<TransactionReceipt> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  let failure: unknown = new Error(`not mined within ${LONGEST_WAIT_MS / 60_000} minutes`);
  for (;;) {
    const receipt = await client.getTransactionReceipt(hash).catch((cause: unknown) => {
      failure = cause;
      return null;
    });
    if (receipt?.status === 1) return receipt;
    if (receipt) {
      const remedy = 'The registry changed after the simulation: run the command again.';
      const message = `Transaction ${hash} was mined, but reverted. ${remedy}`;
      throw new ChainError('TRANSACTION_REVERTED', message, { remedy });
    }
    if (performance.now() >= deadline) throw notConfirmed(hash, failure);
    await sleep(client.pollingInterval);
  }
}

function notConfirmed(hash: string, cause: unknown): ChainError {
  const message = `Transaction ${hash} was sent, but not confirmed: ${reasonOf(cause)}`;
  const remedy = 'Look the transaction up before sending again.';
  return new ChainError('TRANSACTION_NOT_CONFIRMED', message, { cause, remedy });
}

function reasonOf(cause: unknown): string {
  return printable(nodeErrorOf(cause) ?? messageOf(cause), LONGEST_REASON);
}
