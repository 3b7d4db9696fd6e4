import { join } from 'node:path';
import { parseEther, type JsonRpcProvider, type Wallet } from 'ethers';
import { openDatabaseBesideService } from '../../../service/database/open-database';
import { askTdocInProcess } from './tdoc-in-process';
import { mintedTokens } from '../chain/minted-tokens';
import { startRpcProxy, THROUGH, type Answerer, type RpcCall } from '../chain/rpc-proxy';
import { startStandInNetwork } from '../chain/stand-in-network';
import { temporaryFolder } from '../temporary-folder';

/**
 * An issuer on a stand-in of Amoy, which is no local network: blocks come when the test mines them, and a
 * proxy stands for the provider.
 */
export interface AmoyIssuer {
  chain: JsonRpcProvider;
  registry: string;
  wallet: Wallet;
  /** What the provider was asked, in order. */
  requests: readonly RpcCall[];
  /** From now on the provider answers each call as this says. */
  answer(answerer: Answerer): void;
  /** Settings of a service that begins with an empty journal. */
  newSettings(): Record<string, string> & { DATA_DIR: string };
  mine(blocks?: number): Promise<void>;
  /**
   * Marks the present end of the chain, and gives what takes the chain back to it, once. The blocks that are
   * mined then have other hashes than those before, and what had been sent since is forgotten.
   */
  fork(): Promise<() => Promise<void>>;
  /** Hashes of what waits to be mined. */
  pending(): Promise<string[]>;
  /** Ids of the tokens made since a block, said by the logs of the registry alone. */
  tokensSince(block: number): Promise<string[]>;
  stop(): Promise<void>;
}

/** Blocks on top of a mint's block that make it final. */
export const CONFIRMATIONS = 3;

/** Starts it: the registry is deployed and the issuer's keys are made by the commands that a user runs. */
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
  // A node that is behind has the registry, too.
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

/** Hardhat estimates on top of what waits to be mined: geth does not. */
function likeGeth(answerer: Answerer): Answerer {
  return async (method, params, forward) => {
    const answer = await answerer(method, params, forward);
    return answer === 'none' && method === 'eth_estimateGas' ? forward([params[0], 'latest']) : answer;
  };
}

/** What the journal of a service says of a token. */
export async function journalStateOf(dataDir: string, tokenId: string): Promise<string | undefined> {
  const database = await openDatabaseBesideService({ dataDir, databaseUrl: undefined });
  try {
    const issuances = database.db.selectFrom('issuances').where('token_id', '=', tokenId);
    return (await issuances.select('state').executeTakeFirst())?.state;
  } finally {
    await database.close();
  }
}
