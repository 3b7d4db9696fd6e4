import { getAddress } from 'ethers';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import type { Network } from '../../service/chain/networks';
import { readChainId } from '../../service/chain/read-chain-id';
import { createRpcClient } from '../../service/chain/rpc-client';
import { ChainError, codeOf, ConfigurationError } from '../../service/errors';
import { rpcUrlOf, type Settings } from '../../service/settings';
import { readChainIdentity, type ChainIdentity, type RpcRequest } from './chain-identity';
import type { Target } from './target';

/** JSON-RPC through the network of `--network`. */
export function requestOf(hre: HardhatRuntimeEnvironment): RpcRequest {
  return (method, params = []) => hre.network.provider.request({ method, params });
}

/**
 * Which chain the node is of. Hardhat's own way to ask says nothing of a key that is refused: the service's
 * client asks first.
 *
 * @throws ChainError RPC_UNREACHABLE, RPC_KEY_REFUSED, ConfigurationError CHAIN_ID_MISMATCH.
 */
export async function identifyChain(
  request: RpcRequest,
  target: Target,
  settings: Settings,
): Promise<ChainIdentity> {
  const { network } = target;
  if (network !== undefined) await checkChainId(network, target, rpcUrlOf(network, settings));
  return readChainIdentity(request);
}

async function checkChainId(network: Network, target: Target, url: string): Promise<void> {
  const client = createRpcClient(url, network, 'bulk');
  try {
    const chainId = await readChainId(client, url, network);
    if (chainId !== network.chainId) throw wrongChain(chainId, network, target);
  } catch (thrown) {
    throw codeOf(thrown) === 'RPC_UNREACHABLE' ? unreachable(thrown as ChainError, target) : thrown;
  } finally {
    client.destroy();
  }
}

function unreachable(cause: ChainError, { isLocal, name }: Target): ChainError {
  const remedy = isLocal
    ? 'Start one with `npx hardhat node`, or set RPC_URL to yours.'
    : 'Check RPC_URL and the key, or try again later.';
  const message = `${cause.message} (network ${name})`;
  return new ChainError('RPC_UNREACHABLE', message, { cause, remedy, retryable: true });
}

/**
 * The account that deploys and becomes the registry's admin and minter: that of WALLET_PRIVATE_KEY, or a
 * local node's first.
 *
 * @throws ConfigurationError when there is none.
 */
export async function deployingAccount(request: RpcRequest, { node }: Target): Promise<string> {
  const [first] = (await request('eth_accounts')) as string[];
  if (first !== undefined) return getAddress(first);
  const message = `WALLET_PRIVATE_KEY is not set, and the node at ${node} has no account of its own.`;
  throw new ConfigurationError('NOT_CONFIGURED', message, { remedy: 'Set WALLET_PRIVATE_KEY.' });
}

function wrongChain(actual: number, network: Network, { node, name }: Target): ConfigurationError {
  const message = `The node at ${node} is of chain ${actual}, but ${name} is ${network.chainId}.`;
  const remedy = `Use --network with the network of chain ${actual}, or point RPC_URL at a node of ${name}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', message, { remedy });
}
