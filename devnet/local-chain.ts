import type { JsonRpcProvider } from 'ethers';
import { publishedContractsOf } from '../deploy/registry/published-contracts';
import type { Network } from '../service/chain/networks';
import { ConfigurationError } from '../service/base/errors';
import { startHardhatNode, type HardhatNode } from './hardhat-node';
import { installRegistryMaker } from './installed-registry';
import { ChainWriter, replay, type KeptChain } from './kept-chain';
import { mineByItself } from './mined-block';
import { accountsOf, nodeClient } from './node-client';
import { publishContracts, type ChangeState } from './publish-contracts';
import { markBase, reorganise, type FateOfTransactions, type Reorganisation } from './reorganise';

/** A Hardhat node whose chain has a registry. */
export interface LocalChain {
  node: HardhatNode;
  client: JsonRpcProvider;
  registryAddress: string;
  /** Addresses of the node's accounts. The first is the registry's admin and may mint. */
  accounts: string[];
  /** Whether the chain of an earlier run goes on. */
  isContinued: boolean;
  reorganise(depth: number, fate: FateOfTransactions): Promise<Reorganisation>;
  stop(): Promise<void>;
}

/** How to start a chain. */
interface LocalChainOptions {
  network: Network;
  port: number;
  /** 0: a block for each transaction. */
  blockTimeMs: number;
  logFile: string;
  /** The file that its blocks are kept in. */
  keepIn: string | undefined;
  /** The content of that file: the chain that goes on. */
  kept: KeptChain | undefined;
}

/** Starts a node, and makes a registry on its chain, or mines the blocks of an earlier run again. */
export async function startLocalChain(options: LocalChainOptions): Promise<LocalChain> {
  const { network, port, blockTimeMs, logFile, keepIn, kept } = options;
  const { chainId } = network;
  const isFree = network.gasPricing === 'free';
  const startedAt = kept?.head.startedAt ?? new Date().toISOString();
  const node = await startHardhatNode({ port, chainId, isFree, logFile, ...(keepIn && { startedAt }) });
  // Without batches nothing waits for others to go with.
  const client = nodeClient(node.url, chainId, { batchMaxCount: 1, pollingInterval: 50 });
  const writer = keepIn === undefined ? undefined : new ChainWriter(client, keepIn, kept);
  const stop = async (): Promise<void> => {
    await writer?.stop();
    client.destroy();
    await node.stop();
  };
  try {
    const replayed = kept && (await replay(client, kept, keepIn ?? ''));
    const registryAddress =
      kept?.head.registryAddress ??
      (await makeRegistry(client, network, writer && ((...call) => writer.change(...call))));
    const chain = { client, blockTimeMs, base: replayed ?? (await markBase(client)) };
    await writer?.follow(node.url, { chainId, startedAt, registryAddress, baseBlock: chain.base.number });
    await mineByItself(client, blockTimeMs);
    return {
      node,
      client,
      registryAddress,
      accounts: await accountsOf(client),
      isContinued: kept !== undefined,
      reorganise(depth, fate) {
        const work = (): Promise<Reorganisation> => reorganise(chain, depth, fate);
        return writer ? writer.replaceBlocks(work) : work();
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** On a stand-in for a public network, the contracts are where TradeTrust publishes them. */
async function makeRegistry(
  client: JsonRpcProvider,
  { name, chainId, local }: Network,
  change?: ChangeState,
): Promise<string> {
  if (local) return (await installRegistryMaker(client)).make();
  const published = publishedContractsOf(chainId);
  if (published) return (await publishContracts(client, published, change)).make();
  const message = `Nothing can stand in for ${name}: TradeTrust publishes no v5 contracts there.`;
  throw new ConfigurationError('ARGUMENT_INVALID', message);
}
