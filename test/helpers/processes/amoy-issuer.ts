import { join } from 'node:path';
import { parseEther, type JsonRpcProvider, type Wallet } from 'ethers';
import { openDatabaseBesideService } from '../../../service/database/open-database';
import { askTdocInProcess } from './tdoc-in-process';
import { mintedTokens } from '../chain/minted-tokens';
import { startRpcProxy, THROUGH, type Answerer, type RpcCall } from '../chain/rpc-proxy';
import { startStandInNetwork } from '../chain/stand-in-network';
import { temporaryFolder } from '../temporary-folder';

/**
 * An issuer on a stand-in for Amoy, which the service does not treat as a local network. The test mines the
 * blocks, and a proxy acts as the provider.
 */
export interface AmoyIssuer {
  chain: JsonRpcProvider;
  registry: string;
  wallet: Wallet;
  /** The calls to the provider, in order. */
  requests: readonly RpcCall[];
  /** Lets the provider answer each call with this from now on. */
  answer(answerer: Answerer): void;
  /** Settings of a service with a new, empty journal. */
  newSettings(): Record<string, string> & { DATA_DIR: string };
  mine(blocks?: number): Promise<void>;
  /**
   * Marks the present end of the chain. The result takes the chain back to it, once: transactions that were
   * sent since are forgotten, and new blocks have other hashes.
   */
  fork(): Promise<() => Promise<void>>;
  /** Hashes of the waiting transactions. */
  pending(): Promise<string[]>;
  /** Ids of the tokens minted since a block, from the logs of the registry alone. */
  tokensSince(block: number): Promise<string[]>;
  stop(): Promise<void>;
}

/** Blocks on top of a mint's block that make it final. */
export const CONFIRMATIONS = 3;

/** Starts the issuer. Users' commands deploy the registry and create the keys. */
export async function startAmoyIssuer(): Promise<AmoyIssuer> {
  const network = await startStandInNetwork('amoy');
  const { chain, wallet, node, envFile } = network;
  const folder = temporaryFolder();
  await network.fund(parseEther('1000'));
  const common = {
    ENV_FILE: envFile,
    DOMAIN: 'carrier.example',
    DID_DOCUMENT_PATH: join(folder.path, 'did'),
  };
  for (const { code, stderr } of [await network.deploy(), await askTdocInProcess(['did'], common)])
    if (code !== 0) throw new Error(stderr);
  const provider = await startRpcProxy(node.url, likeGeth(THROUGH));
  await chain.send('evm_setAutomine', [false]);
  // With another block, a node that is behind has the registry too.
  await chain.send('evm_mine', []);
  let journals = 0;
  let branch = 0;
  return {
    chain,
    registry: network.registry(),
    wallet,
    requests: provider.requests,
    answer: (answerer) => provider.answer(likeGeth(answerer)),
    newSettings: () => ({
      ...common,
      NET: 'amoy',
      RPC_URL: provider.url,
      GAS_STATION_URL: 'none',
      WALLET_PRIVATE_KEY: wallet.privateKey,
      DATA_DIR: join(folder.path, `data-${journals++}`),
      CONFIRMATIONS: String(CONFIRMATIONS),
      SIGNING_THREADS: '1',
    }),
    async mine(blocks = 1) {
      for (let mined = 0; mined < blocks; mined++) {
        const parent = await chain.getBlock('latest');
        await chain.send('evm_mine', [Number(parent?.timestamp) + 1 + branch]);
      }
    },
    async fork() {
      const snapshot: unknown = await chain.send('evm_snapshot', []);
      return async () => {
        if ((await chain.send('evm_revert', [snapshot])) !== true) throw new Error('could not go back');
        branch++;
      };
    },
    async pending() {
      const waiting = (await chain.send('eth_pendingTransactions', [])) as { hash: string }[];
      return waiting.map(({ hash }) => hash);
    },
    tokensSince: async (block) => [
      ...(await mintedTokens({ client: chain, registryAddress: network.registry() }, block)).keys(),
    ],
    async stop() {
      await provider.close();
      await network.stop();
      folder.remove();
    },
  };
}

/** Estimates without the waiting transactions, as geth does. Hardhat would include them. */
function likeGeth(answerer: Answerer): Answerer {
  return async (method, params, forward) => {
    const answer = await answerer(method, params, forward);
    return answer === 'none' && method === 'eth_estimateGas' ? forward([params[0], 'latest']) : answer;
  };
}

/** The state of a token in the journal of a service. */
export async function journalStateOf(dataDir: string, tokenId: string): Promise<string | undefined> {
  const database = await openDatabaseBesideService({ dataDir, databaseUrl: undefined });
  try {
    const issuances = database.db.selectFrom('issuances').where('token_id', '=', tokenId);
    return (await issuances.select('state').executeTakeFirst())?.state;
  } finally {
    await database.close();
  }
}
