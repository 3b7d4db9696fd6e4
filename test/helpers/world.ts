import { join } from 'node:path';
import { JsonRpcProvider, Wallet } from 'ethers';
import { startHardhatNode, type HardhatNode } from '../../deploy/devnet/hardhat-node';
import { readSettings } from '../../service/config';
import { TitleEscrow__factory, type TitleEscrow } from '../../typechain-types';
import { hardhat } from './hardhat-command';
import { own } from './owned';
import { temporaryFolder } from './temporary-folder';

/** A local chain with a registry on it and all keys made, by the commands that a user runs. */
export interface World {
  folder: string;
  node: HardhatNode;
  client: JsonRpcProvider;
  publicKeyFile: string;
  /** Settings of a service in this world; a test adds its own. */
  settings: Record<string, string>;
  registryAddress: string;
  /** The node's n-th account. */
  account(index: number): Promise<string>;
  /** The title escrow at an address, called as the node's n-th account. */
  escrowAs(index: number, address: string): Promise<TitleEscrow>;
  /** Ends the node, and with it its chain, and starts another on the same port with the registry at the same address. */
  restartNode(): Promise<void>;
  stop(): Promise<void>;
}

/** Key of the first account of every Hardhat node: public knowledge. */
export const DEPLOYER_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/**
 * Starts a node and runs the three setup commands against it.
 *
 * @param domain with the port that the service will listen on, its DID can be resolved.
 */
export async function createWorld({ domain = 'localhost:3000' } = {}): Promise<World> {
  const folder = temporaryFolder();
  let node = await startHardhatNode({ port: 0 });
  const disown = own(`node on ${node.url}`);
  const publicKeyFile = join(folder.path, 'webhook-public-key.pem');
  const settings = {
    ENV_FILE: join(folder.path, 'service.env'),
    SERVICE_CONFIG: join(folder.path, 'service.config.json'),
    DID_DOCUMENT_PATH: join(folder.path, 'did.json'),
    DATA_DIR: join(folder.path, 'data'),
    DOMAIN: domain,
    NET: '31337',
    RPC_URL: node.url,
    WALLET_PRIVATE_KEY: DEPLOYER_KEY,
    // Each costs a second of the processor at every start.
    SIGNING_THREADS: '1',
  };
  await hardhat(['deploy', '--network', 'localhost'], settings);
  await hardhat(['did'], settings);
  await hardhat(['signing-key', '--public-key-file', publicKeyFile], settings);
  // Without batches nothing waits for others to go with.
  const options = { cacheTimeout: -1, batchMaxCount: 1, staticNetwork: true };
  const client = new JsonRpcProvider(node.url, 31337, options);
  const signer = async (index: number) => client.getSigner(index);
  const addressOfRegistry = () => readSettings(settings).settings.TOKEN_REGISTRY_ADDRESS ?? '';
  const registryAddress = addressOfRegistry();
  return {
    folder: folder.path,
    node,
    client,
    publicKeyFile,
    settings,
    registryAddress,
    account: async (index) => (await signer(index)).address,
    escrowAs: async (index, address) => TitleEscrow__factory.connect(address, await signer(index)),
    async restartNode() {
      await node.stop();
      node = await startHardhatNode({ port: Number(new URL(node.url).port) });
      await hardhat(['deploy', '--network', 'localhost'], settings);
      if (addressOfRegistry() !== registryAddress) throw new Error('the registry is not where it was');
    },
    async stop() {
      client.destroy();
      await node.stop();
      disown();
      folder.remove();
    },
  };
}

/** The address of the account that deploys and mints. */
export const DEPLOYER = new Wallet(DEPLOYER_KEY).address;
