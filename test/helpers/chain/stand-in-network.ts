import { randomBytes, randomInt } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { hexlify, type JsonRpcProvider, toQuantity, Wallet } from 'ethers';
import { type HardhatNode, nodeClient } from '../../../devnet/hardhat-node';
import { publishedContractsOf, type PublishedContracts } from '../../../deploy/published-contracts';
import { systemTime } from '../../../service/base/time';
import { findNetwork } from '../../../service/chain/networks';
import { readSettings } from '../../../service/config/config';
import { askHardhatInProcess } from '../processes/hardhat-in-process';
import { startLegacyGasNode, startNode } from './node';
import { owned } from '../resources';
import { installContracts } from '../../../devnet/local-chain';
import { temporaryFolder } from '../temporary-folder';

/** A local node that stands in for a public network, and an empty wallet. */
export interface StandInNetwork extends AsyncDisposable {
  node: HardhatNode;
  chain: JsonRpcProvider;
  published: PublishedContracts;
  wallet: Wallet;
  envFile: string;
  /** Sets the balance of the wallet, in wei. */
  fund(wei: bigint): Promise<void>;
  /**
   * Runs `npx hardhat deploy --network …`, without a gas station unless the settings name one. Returns the
   * output. Rejects unless it exits with 0.
   */
  deploy(args?: string[], settings?: Record<string, string>): Promise<string>;
  /** The same, but rejects unless it exits with 1. */
  refuse(args?: string[], settings?: Record<string, string>): Promise<string>;
  /** TOKEN_REGISTRY_ADDRESS in the env file. */
  registry(): string;
  /** Takes the chain back to its start, with another wallet and env file. It mines at once. */
  reset(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts it. `legacyGas`: blocks have no base fee (legacy-gas.config.cjs). `isPublished`: the v5 contracts
 * are at the addresses where TradeTrust publishes them.
 */
export async function startStandInNetwork(
  name: string,
  { legacyGas = false, isPublished = true }: { legacyGas?: boolean; isPublished?: boolean } = {},
): Promise<StandInNetwork> {
  const chainId = findNetwork(name)?.chainId;
  const published = chainId === undefined ? undefined : publishedContractsOf(chainId);
  if (chainId === undefined || published === undefined) throw new Error(`nothing is published on ${name}`);
  const folder = temporaryFolder();
  // Chains that begin in the same second have the same first block, and share the files of their deployments.
  const initialDate = new Date(systemTime.now() - randomInt(3_600_000)).toISOString();
  const node = await (legacyGas ? startLegacyGasNode(chainId) : startNode(0, chainId, initialDate));
  const chain = nodeClient(node.url, chainId);
  if (isPublished) await installContracts(chain, published);
  const newTenant = () => {
    const wallet = new Wallet(hexlify(randomBytes(32)));
    return { wallet, envFile: join(folder.path, `${name}-${wallet.address}.env`) };
  };
  let { wallet, envFile } = newTenant();
  let snapshot: unknown = await chain.send('evm_snapshot', []);
  const deployWith =
    (exit: number): StandInNetwork['deploy'] =>
    async (args = [], settings = {}) => {
      const { code, stdout, stderr } = await askHardhatInProcess(['deploy', '--network', name, ...args], {
        ENV_FILE: envFile,
        WALLET_PRIVATE_KEY: wallet.privateKey,
        RPC_URL: node.url,
        GAS_STATION_URL: 'none',
        ...settings,
      });
      expect(code, stdout + stderr).to.equal(exit);
      return stdout + stderr;
    };
  const network: Omit<StandInNetwork, keyof AsyncDisposable> = {
    node,
    chain,
    published,
    get wallet() {
      return wallet;
    },
    get envFile() {
      return envFile;
    },
    fund: (wei) => chain.send('hardhat_setBalance', [wallet.address, toQuantity(wei)]) as Promise<void>,
    deploy: deployWith(0),
    refuse: deployWith(1),
    registry: () => readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '',
    async reset() {
      await chain.send('evm_setIntervalMining', [0]);
      await chain.send('evm_setAutomine', [true]);
      if ((await chain.send('evm_revert', [snapshot])) !== true) throw new Error('could not go back');
      snapshot = await chain.send('evm_snapshot', []);
      ({ wallet, envFile } = newTenant());
    },
    async stop() {
      chain.destroy();
      await node.stop();
    },
  };
  return owned(`node on ${node.url}`, network, 'stop');
}
