import type { JsonRpcProvider } from 'ethers';
import { type HardhatNode, nodeClient } from '../../../devnet/hardhat-node';
import { installContracts } from '../../../devnet/local-chain';
import { startAnvil, startGanache, startNode } from './node';

/** The program of a node. */
export type NodeProgram = 'hardhat' | 'anvil' | 'ganache';

const START = { hardhat: startNode, anvil: startAnvil, ganache: startGanache };

/** A node with one registry, and nothing else on its chain. */
export interface PreparedChain {
  program: NodeProgram;
  node: HardhatNode;
  client: JsonRpcProvider;
  /** Makes another registry of the same factory, and returns its address. */
  makeRegistry: () => Promise<string>;
  registryAddress: string;
  /** The chain as it was prepared. */
  snapshot: string;
  isRunning: () => boolean;
}

let idle: PreparedChain | undefined;

/**
 * Gives the chain that an earlier file of this test process gave back, or starts a node: starting and
 * deploying take as much processor time as many files need themselves.
 */
export async function takeChain(program: NodeProgram = 'hardhat'): Promise<PreparedChain> {
  if (program !== 'hardhat' || idle === undefined) return prepare(program, await START[program]());
  const taken = idle;
  idle = undefined;
  return taken;
}

/** Takes back whatever the tests did to the chain. Ends the node if they ended or reset it. */
export async function giveChainBack(chain: PreparedChain): Promise<void> {
  const { client, node, program, snapshot, isRunning } = chain;
  await client.removeAllListeners();
  // Another node may have the port of one that has ended.
  const isReverted = isRunning() && (await revert(client, snapshot).catch(() => false));
  if (program === 'hardhat' && isReverted && idle === undefined) {
    idle = { ...chain, snapshot: await takeSnapshot(client) };
    return;
  }
  client.destroy();
  await node.stop();
}

/** Starts another node on the same port, whose chain has the registry at the same address. */
export async function restartChain(chain: PreparedChain): Promise<PreparedChain> {
  const { program, node, client, registryAddress } = chain;
  await node.stop();
  const restarted = await prepare(program, await START[program](Number(new URL(node.url).port)), client);
  if (restarted.registryAddress !== registryAddress) throw new Error('the registry is not where it was');
  return restarted;
}

async function prepare(
  program: NodeProgram,
  node: HardhatNode,
  // Without batches nothing waits for others to go with.
  client = nodeClient(node.url, 31337, { batchMaxCount: 1 }),
): Promise<PreparedChain> {
  // The node lives as long as the test process, and must not prolong its life.
  node.unref();
  let isRunning = true;
  void node.ended.then(() => (isRunning = false));
  const makeRegistry = await installContracts(client);
  const registryAddress = await makeRegistry();
  const snapshot = await takeSnapshot(client);
  return { program, node, client, makeRegistry, registryAddress, snapshot, isRunning: () => isRunning };
}

const takeSnapshot = (client: JsonRpcProvider): Promise<string> =>
  client.send('evm_snapshot', []) as Promise<string>;

async function revert(client: JsonRpcProvider, snapshot: string): Promise<boolean> {
  await client.send('evm_setIntervalMining', [0]);
  await client.send('evm_setAutomine', [true]);
  return (await client.send('evm_revert', [snapshot])) === true;
}
