import { Agent } from 'node:http';
import { join } from 'node:path';
import { FetchRequest, getAddress, JsonRpcProvider, type JsonRpcApiProviderOptions } from 'ethers';
import { PROJECT_ROOT } from '../service/base/project-root';
import { ConfigurationError } from '../service/base/errors';
import { NODE_CHAIN_ID } from '../service/config/settings';
import { startChild } from './child-process';

/** Plain JavaScript, never compiled: the same file serves the sources and `dist/`. */
const CONFIG_FILE = join(PROJECT_ROOT, 'devnet/node.config.cjs');

/** A running `hardhat node`. */
export type HardhatNode = Awaited<ReturnType<typeof startHardhatNode>>;

/**
 * Hardhat's command line.
 *
 * @throws ConfigurationError HARDHAT_MISSING. Hardhat is an optional peer dependency of this package.
 */
export function hardhatCli(): string {
  try {
    return require.resolve('hardhat/internal/cli/cli.js');
  } catch (cause) {
    const remedy = 'Install it beside this package: `npm install --save-dev hardhat@2`.';
    const message = `A local chain needs Hardhat 2, which is not installed. ${remedy}`;
    throw new ConfigurationError('HARDHAT_MISSING', message, { cause, remedy });
  }
}

/**
 * Starts a real `hardhat node`, reachable from this machine only. Port 0 takes a free port. Its chain ends
 * with it.
 *
 * @param settings of Hardhat's network, beside the chain id.
 * @param configFile instead of node.config.cjs, which does not load the commands of hardhat.config.ts.
 * @throws ConfigurationError HARDHAT_MISSING.
 */
export async function startHardhatNode({
  port,
  chainId = NODE_CHAIN_ID,
  settings = {},
  configFile = CONFIG_FILE,
  logFile,
}: {
  port: number;
  chainId?: number;
  /** `initialDate`: time of the genesis block, in ISO 8601. No base fee: a gas price of 0 is mined. */
  settings?: { initialDate?: string; initialBaseFeePerGas?: 0 };
  configFile?: string;
  logFile?: string;
}) {
  const args = ['--config', configFile, 'node', '--hostname', '127.0.0.1', '--port', String(port)];
  const environment = { DEVNET_NETWORK: JSON.stringify({ chainId, ...settings }) };
  const child = startChild('hardhat node', hardhatCli(), args, environment, logFile);
  const [, url = ''] = await child.lineMatching(/JSON-RPC server at .*?(http:\/\/[\w.]+:\d+)/);
  return {
    url,
    ended: child.ended,
    unref: () => child.unref(),
    stop: () => child.stop(),
  };
}

/**
 * A client of a local node without a cache and with a connection for each request. The node ends idle
 * connections after five seconds, and a request that is sent at that moment would fail.
 */
export function nodeClient(
  url: string,
  chainId = NODE_CHAIN_ID,
  options: JsonRpcApiProviderOptions = {},
): JsonRpcProvider {
  const request = new FetchRequest(url);
  request.getUrlFunc = FetchRequest.createGetUrlFunc({ agent: new Agent({ keepAlive: false }) });
  return new JsonRpcProvider(request, chainId, { cacheTimeout: -1, staticNetwork: true, ...options });
}

/** The addresses of the accounts that a local node signs for. */
export async function accountsOf(client: JsonRpcProvider): Promise<string[]> {
  return ((await client.send('eth_accounts', [])) as string[]).map(getAddress);
}
