import type { JsonRpcProvider } from 'ethers';
import { ConfigurationError, ServiceError } from '../service/base/errors';
import {
  mineAgain,
  mineByItself,
  readBlock,
  readPending,
  sendRaw,
  setClockToNow,
  stopMining,
  type MinedBlock,
} from './mined-block';

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

/** A chain that can be taken back to any block since `base`. */
interface RevertibleChain {
  client: JsonRpcProvider;
  blockTimeMs: number;
  base: Base;
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
  chain: RevertibleChain,
  depth: number,
  fate: FateOfTransactions,
): Promise<Reorganisation> {
  const { client, base } = chain;
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
    const blocks: MinedBlock[] = [];
    for (let number = base.number + 1; number <= oldHead; number++)
      blocks.push(await readBlock(client, number));
    const pending = await readPending(client);
    if ((await client.send('evm_revert', [base.snapshot])) !== true) throw new Error('could not go back');
    base.snapshot = await client.send('evm_snapshot', []);
    await stopMining(client);
    for (const block of blocks.slice(0, commonBlock - base.number))
      if ((await mineAgain(client, block)) !== block.hash) throw notReplayed(block.number);
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
    await mineByItself(client, chain.blockTimeMs);
  }
}

function notReplayed(number: number): ServiceError {
  const remedy = 'Start a new devnet, and call no `hardhat_…` method before `reorganise`.';
  const message =
    `Block ${number} got another hash when it was mined again: a call changed the state or the time ` +
    `outside of any block. The chain ends there. ${remedy}`;
  return new ServiceError('CHAIN_NOT_REPLAYED', message, { remedy });
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('ARGUMENT_INVALID', message);
}
