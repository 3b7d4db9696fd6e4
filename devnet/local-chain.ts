import { utils } from '@tradetrust-tt/token-registry';
import type { BaseContract, JsonRpcProvider } from 'ethers';
import type { PublishedContracts } from '../deploy/published-contracts';
import {
  ERC1967Proxy__factory,
  TDocDeployer__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
} from '../typechain-types';
import { markBase, mineByItself, reorganise, type FateOfTransactions, type Reorganisation } from './blocks';
import { accountsOf, nodeClient, startHardhatNode } from './hardhat-node';
import { ChainWriter, replay } from './kept-chain';
import { filesIn, type DevnetOptions, type Place } from './place';

/** A Hardhat node whose chain has a registry. */
export type LocalChain = Awaited<ReturnType<typeof startLocalChain>>;

/** Starts a node, and makes a registry on its chain, or mines the blocks of an earlier run again. */
export async function startLocalChain(
  { network, published, folder, ports, kept }: Place,
  { blockTime, keep }: DevnetOptions,
) {
  const { chainId, gasPricing } = network;
  const blockTimeMs = blockTime === undefined ? network.blockTimeMs : blockTime * 1_000;
  const files = filesIn(folder);
  const startedAt = kept?.head.startedAt ?? new Date().toISOString();
  const node = await startHardhatNode({
    port: ports.node,
    chainId,
    settings: {
      ...(keep && { initialDate: startedAt }),
      ...(gasPricing === 'free' && { initialBaseFeePerGas: 0 }),
    },
    logFile: files.log('node'),
  });
  // Without batches nothing waits for others to go with.
  const client = nodeClient(node.url, chainId, { batchMaxCount: 1, pollingInterval: 50 });
  const writer = keep ? new ChainWriter(client, files.chain, kept) : undefined;
  const stop = async (): Promise<void> => {
    await writer?.stop();
    client.destroy();
    await node.stop();
  };
  try {
    const replayed = kept && (await replay(client, kept, files.chain));
    const make = async (): Promise<string> =>
      (await installContracts(client, published, writer && ((...call) => writer.change(...call))))();
    // The first account of the node is the registry's admin and may mint.
    const registryAddress = kept?.head.registryAddress ?? (await make());
    const chain = { client, blockTimeMs, base: replayed ?? (await markBase(client)) };
    await writer?.follow(node.url, { chainId, startedAt, registryAddress, baseBlock: chain.base.number });
    await mineByItself(client, blockTimeMs);
    return {
      node,
      client,
      registryAddress,
      accounts: await accountsOf(client),
      reorganise(depth: number, fate: FateOfTransactions): Promise<Reorganisation> {
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

/** Storage of TitleEscrowFactory: its only variable, the title escrow of which all others are clones. */
const ESCROW_SLOT = '0x0';
/** EIP-1967: the slot where a proxy keeps the address of its implementation. */
const IMPLEMENTATION_SLOT = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';

/**
 * Deploys the contracts of deploy/contracts.ts to a local chain that mines at once. It works in
 * this process because the command takes seconds. On a new chain the addresses are always the same.
 *
 * @param published addresses that get the contracts' code, with its immutable values, and their storage: the
 *   chain then stands in for the public network where TradeTrust publishes them.
 * @param change makes the calls that change the state outside of any block.
 * @returns what makes a registry that shares the title escrow factory, and returns its address. The node's
 *   first account is its admin and may mint.
 */
export async function installContracts(
  chain: JsonRpcProvider,
  published?: PublishedContracts,
  change = (method: string, params: unknown[]): Promise<unknown> => chain.send(method, params),
): Promise<() => Promise<string>> {
  const signer = await chain.getSigner(0);
  const factory = await new TitleEscrowFactory__factory(signer).deploy();
  const token = await new TradeTrustTokenStandard__factory(signer).deploy();
  const logic = await new TDocDeployer__factory(signer).deploy();
  const proxy = await new ERC1967Proxy__factory(signer).deploy(logic, '0x');
  await proxy.waitForDeployment();
  const copy = async (address: string, original: BaseContract, slot?: string): Promise<void> => {
    await change('hardhat_setCode', [address, await original.getDeployedCode()]);
    if (slot) await change('hardhat_setStorageAt', [address, slot, await chain.getStorage(original, slot)]);
  };
  if (published) {
    await copy(published.titleEscrowFactory, factory, ESCROW_SLOT);
    await copy(published.tokenImplementation, token);
    await copy(published.deployer, proxy, IMPLEMENTATION_SLOT);
  }
  const deployer = TDocDeployer__factory.connect(published?.deployer ?? (await proxy.getAddress()), signer);
  const implementation = published?.tokenImplementation ?? token;
  await (await deployer.initialize()).wait();
  await (await deployer.addImplementation(implementation, published?.titleEscrowFactory ?? factory)).wait();
  return async () => {
    const init = { name: 'Transferable Documents', symbol: 'TDOC', deployer: signer.address };
    const sent = await deployer.deploy(implementation, utils.encodeInitParams(init) as string);
    const logs = (await sent.wait())?.logs.map((log) => deployer.interface.parseLog(log));
    const made = logs?.find((event) => event?.name === 'Deployment');
    if (!made) throw new Error('no registry was deployed');
    return String(made.args.deployed);
  };
}
