import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { dataSlice, getAddress, id, keccak256, Transaction, type TransactionReceipt } from 'ethers';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import * as z from 'zod';
import { SECRET_MODE, writeFileAtomically } from '../cli/files/write-file';
import { costLines, gasLimitFor, requireFunds } from '../cli/transactions';
import { messageOf, ServiceError } from '../service/base/errors';
import { type Time, pause } from '../service/base/time';
import type { Network } from '../service/chain/networks';
import { ALREADY_KNOWN, isBlockAbsent } from '../service/chain/node-errors';
import { LEAST_FEE_REMEDY, type TransactionFees } from '../service/chain/transactions';
import type { TransactionSigner } from '../service/keys/transaction-signer';

/** A chain, a wallet that pays on it, and a folder with a file for each transaction. */
export interface Sender {
  readonly hre: HardhatRuntimeEnvironment;
  readonly time: Time;
  readonly network: Network;
  readonly provider: HardhatRuntimeEnvironment['ethers']['provider'];
  readonly wallet: TransactionSigner;
  readonly folder: string;
  /**
   * The same for all transactions of a command, so the fees that are shown are those that are offered. A
   * refusal of a node that names higher ones raises them.
   */
  readonly fees: (refusal?: string) => Promise<TransactionFees>;
  /** Prints a line. */
  readonly say: (line: string) => void;
}

/** A transaction that must be made once. */
export interface Step {
  /** Name of its file. */
  readonly name: string;
  /** Its effect, printed with its cost. Undefined if both were printed before. */
  readonly effect?: string;
  /** `to` is null if it creates a contract. */
  readonly to: string | null;
  readonly data: string;
}

/** The content of a step's file. */
const SENT = z.object({
  /** Hashes of the transactions that were signed. They have the same nonce, so at most one is ever mined. */
  hashes: z.array(z.string()).min(1),
  /** The newest of them, until one is mined. */
  raw: z.string().optional(),
  /** The contract that the mined one has created; empty if it created none. */
  created: z.string().optional(),
  /** Whether a command has written this contract's address into ENV_FILE, or refused it and named --new. */
  isReported: z.boolean().optional(),
});
type Sent = z.infer<typeof SENT>;

/** How often a transaction is signed in a run, at higher fees each time. */
const MOST_SIGNATURES = 5;
/** Ignored on chains that mine a block for each transaction: no later block comes by itself. */
const CONFIRMATIONS = 5;
const POLLING_INTERVAL_MS = 300;
/** A node may drop a transaction, so it is asked for it after each so many polls. */
const POLLS_BETWEEN_CHECKS = 10;
const DEPLOYMENT_TOPIC = id('Deployment(address,address,address,address,bytes)');

/** Errors of nodes for a transaction whose gas price is too low, except for a replacement. */
const OFFERS_TOO_LITTLE = /^(?!.*replacement).*(underpriced|(fee|tip|price).*(too ?low|less than|below))/is;

/**
 * The step as an earlier run, or this one, has left it.
 *
 * @throws ServiceError DEPLOYMENT_FAILED if the file is damaged: without it, another would be made.
 */
export function readSent({ folder }: Sender, name: string): Sent | undefined {
  const path = join(folder, `${name}.json`);
  if (!existsSync(path)) return undefined;
  const { data } = SENT.safeParse(parsed(readFileSync(path, 'utf8')));
  if (data !== undefined) return data;
  const remedy =
    "Restore it from a backup. If there is none, look up the wallet's last transactions on the explorer: " +
    'delete the file only if you know all contracts that they have created.';
  throw new ServiceError('DEPLOYMENT_FAILED', `${path} is damaged.`, { remedy });
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Replaces the step's file. */
export function writeSent({ folder }: Sender, name: string, sent: Sent): void {
  writeFileAtomically(join(folder, `${name}.json`), `${JSON.stringify(sent, null, 2)}\n`, SECRET_MODE);
}

/**
 * Makes a transaction, waits until it is mined, and returns the address that it created, with its hash if
 * this run has waited for it. However often a run is interrupted, only one transaction is mined: each is
 * signed, written to the step's file and then sent. The next run finds it there, and sends it again if the
 * node does not have it: the same bytes are the same transaction.
 *
 * @param isAnew whether an earlier run's transaction does not count.
 * @throws ServiceError DEPLOYMENT_FAILED if the node rejects it; ConfigurationError WALLET_NOT_FUNDED before
 *   anything is signed; errors of the node.
 */
export async function sendOnce(
  sender: Sender,
  step: Step,
  isAnew = false,
): Promise<{ created: string; hash?: string }> {
  const { network, say } = sender;
  let sent = isAnew ? undefined : readSent(sender, step.name);
  if (sent?.created !== undefined) return { created: sent.created };
  if (sent !== undefined) say(`Resuming on ${network.name}: a transaction was signed earlier …`);
  let refusal = sent && (await handOver(sender, sent));
  let left = MOST_SIGNATURES;
  while (
    sent === undefined ||
    (refusal !== undefined && left > 0 && (await isTooCheap(sender, sent, refusal)))
  ) {
    sent = await sign(sender, step, sent);
    refusal = await handOver(sender, sent);
    left--;
  }
  if (refusal !== undefined) throw refused(sender, step, sent, refusal);
  const receipt = await minedOf(sender, step, sent);
  if (receipt.status === 0) throw reverted(sender, step, receipt);
  const { hash } = receipt;
  const created = createdBy(receipt);
  writeSent(sender, step.name, { hashes: [hash], created });
  return { created, hash };
}

/**
 * Signs a transaction and writes it to the step's file. One that takes the place of `before` has its nonce,
 * so that not both can be mined.
 */
async function sign(sender: Sender, step: Step, before?: Sent): Promise<Sent> {
  const { network, provider, wallet, fees, say } = sender;
  const earlier = before?.raw === undefined ? undefined : Transaction.from(before.raw);
  const { to, data } = earlier ?? step;
  const gas = await provider.estimateGas({ from: wallet.address, to, data });
  await afford(sender, gas, step.effect !== undefined);
  if (step.effect !== undefined) say(`Deploying ${step.effect} on ${network.name} …`);
  const raw = await wallet.sign({
    to,
    data,
    chainId: network.chainId,
    nonce: earlier?.nonce ?? (await provider.getTransactionCount(wallet.address, 'pending')),
    gasLimit: gasLimitFor(gas),
    ...(await fees()),
  });
  const sent = { hashes: [...(before?.hashes ?? []), keccak256(raw)], raw };
  writeSent(sender, step.name, sent);
  return sent;
}

/**
 * Checks that the wallet can pay for this much gas, by the node's estimate.
 *
 * @param isShown whether wallet, balance and highest cost are printed first.
 * @throws ConfigurationError WALLET_NOT_FUNDED.
 */
export async function afford(sender: Sender, gas: bigint, isShown: boolean): Promise<void> {
  const { network, provider, wallet, fees, say } = sender;
  const account = wallet.address;
  const cost = { account, balance: await provider.getBalance(account), gas, fees: await fees() };
  if (isShown) for (const line of costLines(cost, network)) say(line);
  requireFunds(cost, network);
}

/** Gives the transaction to the node. Undefined if the node has it now, else the reason for its refusal. */
async function handOver(sender: Sender, { hashes, raw }: Sent): Promise<string | undefined> {
  if (await isKnown(sender, hashes)) return undefined;
  const refusal: string | undefined = await sender.provider
    .send('eth_sendRawTransaction', [raw])
    .then(() => undefined, messageOf);
  const isTaken = refusal === undefined || ALREADY_KNOWN.test(refusal) || (await isKnown(sender, hashes));
  return isTaken ? undefined : refusal;
}

async function isKnown({ provider }: Sender, hashes: Sent['hashes']): Promise<boolean> {
  for (const hash of hashes)
    if ((await provider.send('eth_getTransactionByHash', [hash])) !== null) return true;
  return false;
}

/** Whether a transaction at current fees, or at those that the node names, can take the place of this one. */
async function isTooCheap(sender: Sender, sent: Sent, refusal: string): Promise<boolean> {
  const { from, nonce, maxFeePerGas, maxPriorityFeePerGas, gasPrice } = Transaction.from(sent.raw);
  if (!OFFERS_TOO_LITTLE.test(refusal) || from !== sender.wallet.address) return false;
  const fees = await sender.fees(refusal);
  const isHigher =
    fees.type === 0
      ? fees.gasPrice > (gasPrice ?? 0n)
      : fees.maxFeePerGas > (maxFeePerGas ?? 0n) || fees.maxPriorityFeePerGas > (maxPriorityFeePerGas ?? 0n);
  return isHigher && (await sender.provider.getTransactionCount(from, 'pending')) <= nonce;
}

/**
 * Waits as long as it takes: the fees of a sent transaction are never raised. If the node has dropped the
 * transaction, it is sent again.
 *
 * @throws ServiceError DEPLOYMENT_FAILED if another transaction has used its nonce.
 */
async function minedOf(sender: Sender, step: Step, sent: Sent): Promise<TransactionReceipt> {
  const { time, network, provider } = sender;
  const minesAtOnce: unknown = await provider.send('hardhat_getAutomine', []).catch(() => false);
  const confirmations = network.local || minesAtOnce === true ? 1 : CONFIRMATIONS;
  for (let polls = 1; ; polls += 1) {
    const newest = await provider.getBlockNumber();
    for (const hash of sent.hashes) {
      const receipt = await provider.getTransactionReceipt(hash);
      if (receipt !== null && newest - receipt.blockNumber + 1 >= confirmations) return receipt;
    }
    if (polls % POLLS_BETWEEN_CHECKS === 0) {
      const refusal = await handOver(sender, sent);
      // Blocks that a reorganisation may still remove do not count.
      if (refusal !== undefined && (await isNonceUsed(sender, sent, newest - confirmations + 1)))
        throw refused(sender, step, sent, refusal);
    }
    await pause(time, POLLING_INTERVAL_MS);
  }
}

/** Whether the wallet has used the transaction's nonce up to this block. */
async function isNonceUsed({ provider }: Sender, { raw }: Sent, block: number): Promise<boolean> {
  const { from, nonce } = Transaction.from(raw);
  return from !== null && (await provider.getTransactionCount(from, Math.max(block, 0))) > nonce;
}

/** The address of the new contract, or that of the registry, which the deployer's event names. */
function createdBy({ contractAddress, to, logs }: TransactionReceipt): string {
  const ofDeployer = logs.filter(({ address, topics }) => address === to && topics[0] === DEPLOYMENT_TOPIC);
  return (
    contractAddress ?? ofDeployer.map(({ topics }) => getAddress(dataSlice(topics[1] ?? '', 12))).join('')
  );
}

/** Hash of block 0. Undefined if the node does not have it: it is pruned, or began with a snapshot. */
export async function originHash({ provider }: Pick<Sender, 'provider'>): Promise<string | undefined> {
  const block = await provider.getBlock(0).catch((error: unknown) => {
    // Hardhat throws the node's error itself.
    if (isBlockAbsent({ error })) return null;
    throw error;
  });
  return block?.hash ?? undefined;
}

/**
 * Forgets what the chain does not have. For local chains: they are restarted, reset and reverted. A public
 * node may only have dropped a transaction from its mempool or its index. A local node without block 0 need
 * not have the transactions either: what was mined counts there if all contracts are there.
 */
export async function forgetMissing(sender: Sender): Promise<void> {
  const { folder, provider } = sender;
  if (!existsSync(folder)) return;
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  const steps = files.flatMap((file) => {
    const sent = readSent(sender, file.slice(0, -'.json'.length));
    return sent === undefined ? [] : { file, ...sent };
  });
  const contracts = steps.flatMap(({ created }) => created || []);
  const codes = async () => Promise.all(contracts.map((address) => provider.getCode(address)));
  const isPruned =
    contracts.length > 0 && (await originHash(sender)) === undefined && !(await codes()).includes('0x');
  for (const { file, hashes, created } of steps)
    if (!(isPruned && created !== undefined) && !(await isKnown(sender, hashes))) rmSync(join(folder, file));
}

function refused(
  { network, folder }: Sender,
  { name }: Step,
  { hashes }: Sent,
  reason: string,
): ServiceError {
  const message = `The node of ${network.name} rejects the transaction ${hashes.at(-1)}: ${reason}.`;
  const remedy =
    (OFFERS_TOO_LITTLE.test(reason)
      ? `${LEAST_FEE_REMEDY}, and run the command again: it signs the transaction again. `
      : 'Fix the cause and run the command again: it sends the same transaction. ') +
    'If the wallet has used its nonce for another one, it can never be mined: ' +
    `then delete ${join(folder, `${name}.json`)} and run the command again.`;
  return new ServiceError('DEPLOYMENT_FAILED', message, { remedy });
}

function reverted({ network, folder }: Sender, { name }: Step, { hash }: TransactionReceipt): ServiceError {
  rmSync(join(folder, `${name}.json`));
  const message = `The transaction ${hash} was mined on ${network.name}, but failed.`;
  return new ServiceError('DEPLOYMENT_FAILED', message, {
    remedy: 'Run the command again: it makes another.',
  });
}
