import { join } from 'node:path';
import { type JsonRpcProvider, toQuantity, Wallet } from 'ethers';
import type { HardhatNode } from '../../../devnet/hardhat-node';
import { publishedContractsOf, type PublishedContracts } from '../../../deploy/registry/published-contracts';
import { findNetwork } from '../../../service/chain/networks';
import { readSettings } from '../../../service/config/config';
import type { CommandAnswer } from '../processes/command-answer';
import { askHardhatInProcess } from '../processes/hardhat-in-process';
import { startLegacyGasNode, startNode } from './node';
import { nodeClient } from './node-client';
import { track } from '../resources';
import { publishContracts } from './published-contracts';
import { temporaryFolder } from '../temporary-folder';

/** A local node that stands in for a public network, and an empty wallet. */
export interface StandInNetwork {
  node: HardhatNode;
  chain: JsonRpcProvider;
  published: PublishedContracts;
  wallet: Wallet;
  envFile: string;
  /** Sets the balance of the wallet, in wei. */
  fund(wei: bigint): Promise<void>;
  /** Runs `npx hardhat deploy --network …`, without a gas station unless the settings name one. */
  deploy(args?: string[], settings?: Record<string, string>): Promise<CommandAnswer>;
  /** TOKEN_REGISTRY_ADDRESS in the env file. */
  registry(): string;
  stop(): Promise<void>;
}

/**
 * Starts it. `legacyGas`: blocks have no base fee (legacy-gas-node.ts). `isPublished`: the v5 contracts are
 * at the addresses where TradeTrust publishes them.
 */
export async function startStandInNetwork(
  name: string,
  { legacyGas = false, isPublished = true }: { legacyGas?: boolean; isPublished?: boolean } = {},
): Promise<StandInNetwork> {
  const chainId = findNetwork(name)?.chainId;
  const published = chainId === undefined ? undefined : publishedContractsOf(chainId);
  if (chainId === undefined || published === undefined) throw new Error(`nothing is published on ${name}`);
  const folder = temporaryFolder();
  const envFile = join(folder.path, `${name}.env`);
  const node = await (legacyGas ? startLegacyGasNode(chainId) : startNode(0, chainId));
  const untrack = track(`node on ${node.url}`);
  const chain = nodeClient(node.url, chainId);
  if (isPublished) await publishContracts(chain, published);
  const wallet = new Wallet(Wallet.createRandom().privateKey);
  const base = { ENV_FILE: envFile, WALLET_PRIVATE_KEY: wallet.privateKey, RPC_URL: node.url };
  return {
    node,
    chain,
    published,
    wallet,
    envFile,
    fund: (wei) => chain.send('hardhat_setBalance', [wallet.address, toQuantity(wei)]) as Promise<void>,
    deploy: (args = [], settings = {}) =>
      askHardhatInProcess(['deploy', '--network', name, ...args], {
        ...base,
        GAS_STATION_URL: 'none',
        ...settings,
      }),
    registry: () => readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '',
    async stop() {
      chain.destroy();
      await node.stop();
      untrack();
      folder.remove();
    },
  };
}
