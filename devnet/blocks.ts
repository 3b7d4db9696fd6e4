import { Transaction, type JsonRpcProvider } from 'ethers';
import { invalid } from '../cli/errors';
import { ServiceError } from '../service/base/errors';

/** A block of a Hardhat node, with everything that mines it again with the same hash. */
export interface MinedBlock {
  number: number;
  hash: string;
  /** In seconds. */
  timestamp: number;
  prevRandao: string;
  /** Signed bytes, in order. */
  transactions: string[];
}

/** Reads the blocks from one number to another, both included. */
export async function readBlocks(client: JsonRpcProvider, from: number, to: number): Promise<MinedBlock[]> {
  const blocks: MinedBlock[] = [];
  for (let number = from; number <= to; number++) {
    const block = await client.getBlock(number, true);
    if (!block?.hash || !block.prevRandao) throw new Error(`the node has no block ${number}`);
    const { hash, timestamp, prevRandao, prefetchedTransactions } = block;
    const transactions = prefetchedTransactions.map((sent) => Transaction.from(sent).serialized);
    blocks.push({ number, hash, timestamp, prevRandao, transactions });
  }
  return blocks;
}

/** Signed bytes of the transactions that wait to be mined. */
async function readPending(client: JsonRpcProvider): Promise<string[]> {
  const waiting = (await client.send('eth_pendingTransactions', [])) as { hash: string }[];
  const sent = await Promise.all(waiting.map(({ hash }) => client.getTransaction(hash)));
  return sent.flatMap((transaction) => (transaction ? [Transaction.from(transaction).serialized] : []));
}

/** Sends signed transactions, in order. The node must not mine by itself. */
async function sendRaw(client: JsonRpcProvider, transactions: readonly string[]): Promise<void> {
  for (const bytes of transactions) await client.send('eth_sendRawTransaction', [bytes]);
}

/**
 * Mines a block again on top of the same parent. The node must not mine by itself.
 *
 * @returns whether it has the same hash. It has unless something else changed the state.
 */
export async function mineAgain(client: JsonRpcProvider, block: MinedBlock): Promise<boolean> {
  await client.send('hardhat_setPrevRandao', [block.prevRandao]);
  await sendRaw(client, block.transactions);
  await client.send('evm_mine', [block.timestamp]);
  return (await client.getBlock(block.number))?.hash === block.hash;
}

/** How a node mines: blocks at this interval in milliseconds, or with 0 one for each transaction. */
export async function mineByItself(client: JsonRpcProvider, blockTimeMs: number): Promise<void> {
  await client.send('evm_setAutomine', [blockTimeMs === 0]);
  await client.send('evm_setIntervalMining', [blockTimeMs]);
}

/** Stops mining until `mineByItself`. */
export async function stopMining(client: JsonRpcProvider): Promise<void> {
  await client.send('evm_setIntervalMining', [0]);
  await client.send('evm_setAutomine', [false]);
}

/** Lets the clock of a chain whose blocks were mined again go on from now. */
export async function setClockToNow(client: JsonRpcProvider): Promise<void> {
  const head = await client.getBlock('latest');
  const behind = Math.floor(Date.now() / 1000) - Number(head?.timestamp);
  if (behind > 0) await client.send('evm_increaseTime', [behind]);
}

/**
 * The fate of the transactions of the blocks that a reorganisation takes back:
 *
 * - `mined again`: the new branch has them too, in the same order, as on a public network most of the time.
 * - `dropped`: the new branch does not have them. The service sends its own mints again.
 */
export type FateOfTransactions = (typeof FATES)[number];

const FATES = ['mined again', 'dropped'] as const;

/** A block that is never taken back, and the node's snapshot of it, which works once. */
export interface Base {
  number: number;
  snapshot: unknown;
}

/** Makes the newest block the base. The node must not mine meanwhile. */
export async function markBase(client: JsonRpcProvider): Promise<Base> {
  const snapshot: unknown = await client.send('evm_snapshot', []);
  return { number: await client.getBlockNumber(), snapshot };
}

/** The result of a reorganisation. `oldHead`, `newHead`: block numbers. */
export interface Reorganisation {
  oldHead: number;
  newHead: number;
  /** The newest block that both branches have. */
  commonBlock: number;
}

/**
 * Replaces the last blocks by a branch that is one block longer. The node goes back to its only snapshot and
 * mines the kept blocks again with the same hashes, so no snapshot of each block is needed.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, for example if there are fewer blocks since `base`;
 *   ServiceError CHAIN_NOT_REPLAYED, after which the chain is of no use.
 */
export async function reorganise(
  { client, blockTimeMs, base }: { client: JsonRpcProvider; blockTimeMs: number; base: Base },
  depth: number,
  fate: FateOfTransactions,
): Promise<Reorganisation> {
  if (!Number.isSafeInteger(depth) || depth < 1)
    throw invalid('The depth must be a number of blocks, from 1.');
  if (!FATES.includes(fate)) throw invalid(`transactions is ${fate}: give '${FATES.join("' or '")}'.`);
  await stopMining(client);
  try {
    const oldHead = await client.getBlockNumber();
    const commonBlock = oldHead - depth;
    if (commonBlock < base.number) {
      const most = oldHead - base.number;
      throw invalid(`The chain has ${most} blocks since its registry was made: not ${depth}.`);
    }
    const blocks = await readBlocks(client, base.number + 1, oldHead);
    const pending = await readPending(client);
    if ((await client.send('evm_revert', [base.snapshot])) !== true) throw new Error('could not go back');
    base.snapshot = await client.send('evm_snapshot', []);
    await stopMining(client);
    for (const block of blocks.slice(0, commonBlock - base.number))
      if (!(await mineAgain(client, block))) throw notReplayed(block.number);
    for (const { timestamp, transactions } of blocks.slice(commonBlock - base.number)) {
      if (fate === 'mined again') await sendRaw(client, transactions);
      // With the same time as before, a block would have the same hash.
      await client.send('evm_mine', [timestamp + 1]);
    }
    await sendRaw(client, pending);
    await client.send('evm_mine', []);
    await setClockToNow(client);
    return { oldHead, commonBlock, newHead: oldHead + 1 };
  } finally {
    await mineByItself(client, blockTimeMs);
  }
}

function notReplayed(number: number): ServiceError {
  const remedy = 'Start a new devnet, and call no `hardhat_…` method before `reorganise`.';
  const message =
    `Block ${number} got another hash when it was mined again: a call changed the state or the time ` +
    `outside of any block. The chain ends there. ${remedy}`;
  return new ServiceError('CHAIN_NOT_REPLAYED', message, { remedy });
}
