import { getAddress } from 'ethers';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import type { Network } from '../../service/chain/networks';
import { createRpcClient, readChainId } from '../../service/chain/rpc-client';
import { ChainError, codeOf, ConfigurationError } from '../../service/base/errors';
import { printableUrl } from '../../service/base/mask-secrets';
import { NODE_CHAIN_ID, type Settings } from '../../service/config/settings';
import { readChainIdentity, type ChainIdentity, type RpcRequest } from './chain-identity';
import { httpRpcUrlOf, type Target } from './target';

/** JSON-RPC through the network that the command works on. */
export function requestOf(hre: HardhatRuntimeEnvironment): RpcRequest {
  return (method, params = []) => hre.network.provider.request({ method, params });
}

/**
 * Identifies the node's chain. The service's client asks first, because Hardhat does not report that a
 * provider key was refused.
 *
 * @throws ChainError RPC_UNREACHABLE, RPC_KEY_REFUSED, ConfigurationError CHAIN_ID_MISMATCH.
 */
export async function identifyChain(
  request: RpcRequest,
  target: Target,
  settings: Settings,
): Promise<ChainIdentity> {
  if (target.network !== undefined) await checkNode(target.network, settings);
  return readChainIdentity(request);
}

/**
 * Checks that the network's node answers and belongs to its chain.
 *
 * @throws ChainError RPC_UNREACHABLE, RPC_KEY_REFUSED, ConfigurationError CHAIN_ID_MISMATCH.
 */
export async function checkNode(network: Network, settings: Settings): Promise<void> {
  const url = httpRpcUrlOf(network, settings);
  const client = createRpcClient(url, network, 'bulk');
  try {
    const chainId = await readChainId(client, url, network);
    if (chainId !== network.chainId) throw wrongChain(chainId, network, url);
  } catch (thrown) {
    throw codeOf(thrown) === 'RPC_UNREACHABLE' ? unreachable(thrown as ChainError, network) : thrown;
  } finally {
    client.destroy();
  }
}

function unreachable(cause: ChainError, network: Network): ChainError {
  const remedy = network.local
    ? `Start one with ${startOf(network)}, or set RPC_URL to yours.`
    : 'Check RPC_URL and the key, or try again later.';
  const message = `${cause.message} (network ${network.name})`;
  return new ChainError('RPC_UNREACHABLE', message, { cause, remedy, retryable: true });
}

/** The command that starts a node of a local network. */
function startOf({ chainId }: Network): string {
  return chainId === NODE_CHAIN_ID ? '`npx hardhat node`' : `\`LOCAL_CHAIN_ID=${chainId} npx hardhat node\``;
}

/**
 * The account that deploys and becomes the registry's admin and minter: that of WALLET_PRIVATE_KEY, or the
 * first account of a local node.
 *
 * @throws ConfigurationError if there is none.
 */
export async function deployingAccount(request: RpcRequest, { node }: Target): Promise<string> {
  const [first] = (await request('eth_accounts')) as string[];
  if (first !== undefined) return getAddress(first);
  const message = `WALLET_PRIVATE_KEY is not set, and the node at ${node} has no account of its own.`;
  throw new ConfigurationError('NOT_CONFIGURED', message, { remedy: 'Set WALLET_PRIVATE_KEY.' });
}

function wrongChain(actual: number, network: Network, url: string): ConfigurationError {
  const { name, chainId } = network;
  const message = `The node at ${printableUrl(url)} is of chain ${actual}, but ${name} is ${chainId}.`;
  const start = network.local ? ` (${startOf(network)} starts one)` : '';
  const remedy =
    `Set NET, or --network where you used it, to the network of chain ${actual}, ` +
    `or point RPC_URL at a node of ${name}${start}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', message, { remedy });
}
