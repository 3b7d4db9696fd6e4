import { join } from 'node:path';
import { type JsonRpcProvider, Wallet } from 'ethers';
import { accountsOf, type HardhatNode } from '../../../devnet/hardhat-node';
import { setEnvValue } from '../../../cli/files/env-file';
import { makeDidKey, makeSigningKey } from '../../../cli/keys/make-keys';
import { TitleEscrow__factory, type TitleEscrow } from '../../../typechain-types';
import './parsed-abis';
import { giveChainBack, restartChain, takeChain, type NodeProgram } from './prepared-chain';
import { owned } from '../resources';
import { temporaryFolder } from '../temporary-folder';

/** A local chain with a registry on it, and all keys made. */
export interface LocalSetup extends AsyncDisposable {
  folder: string;
  node: HardhatNode;
  client: JsonRpcProvider;
  publicKeyFile: string;
  /** Settings of a service in this setup; a test adds its own. */
  settings: Record<string, string>;
  registryAddress: string;
  /** The node's accounts. */
  accounts: string[];
  /** The node's n-th account. */
  account(index: number): Promise<string>;
  /** The title escrow at an address, called as the node's n-th account. */
  escrowAs(index: number, address: string): Promise<TitleEscrow>;
  /** Makes another registry of the same factory, and returns its address. */
  makeRegistry(): Promise<string>;
  /**
   * Ends the node and its chain, and starts another on the same port, with the registry at the same address.
   */
  restartNode(): Promise<void>;
  stop(): Promise<void>;
}

/** The published key of the first account of every Hardhat node. */
export const DEPLOYER_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/**
 * Prepares a chain and does what the three setup commands do, within this process.
 *
 * @param program of the node. The chain of Hardhat's is prepared once for all files of a test process.
 * @param domain must have the port of the service if its DID is to be resolved.
 */
export async function createLocalSetup({
  domain = 'localhost:3000',
  program,
}: { domain?: string; program?: NodeProgram | undefined } = {}): Promise<LocalSetup> {
  const folder = temporaryFolder();
  let chain = await takeChain(program);
  const { node, client, registryAddress } = chain;
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
    // Each thread takes a second of processor time to start.
    SIGNING_THREADS: '1',
  };
  await makeDidKey({}, settings);
  await makeSigningKey({ publicKeyFile }, settings);
  const signer = async (index: number) => chain.client.getSigner(index);
  await setEnvValue(settings.ENV_FILE, 'TOKEN_REGISTRY_ADDRESS', registryAddress);
  const local: Omit<LocalSetup, keyof AsyncDisposable> = {
    folder: folder.path,
    get node() {
      return chain.node;
    },
    client,
    publicKeyFile,
    settings,
    registryAddress,
    accounts: await accountsOf(client),
    account: async (index) => (await signer(index)).address,
    escrowAs: async (index, address) => TitleEscrow__factory.connect(address, await signer(index)),
    makeRegistry: () => chain.makeRegistry(),
    async restartNode() {
      chain = await restartChain(chain);
    },
    stop: () => giveChainBack(chain),
  };
  return owned(`the chain of ${node.url}`, local, 'stop');
}

/** A setup for all tests of a suite: registers the hook that creates it. Call it in a `describe`. */
export function localSetupOfSuite(): LocalSetup {
  let local: LocalSetup | undefined;

  before(async () => {
    local = await createLocalSetup();
  });

  return new Proxy({} as LocalSetup, {
    get(_, name): unknown {
      if (local === undefined) throw new Error('used outside of a test');
      return Reflect.get(local, name);
    },
  });
}

/** The address of the account that deploys and mints. */
export const DEPLOYER = new Wallet(DEPLOYER_KEY).address;
