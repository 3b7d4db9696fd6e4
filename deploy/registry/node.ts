import { getAddress } from 'ethers';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { ChainError, ConfigurationError } from '../../service/errors';
import { readChainIdentity, type ChainIdentity, type RpcRequest } from './chain-identity';
import type { Target } from './target';

/** Number of Hardhat's error "Hardhat was set to use chain id …, but connected to a chain with id …" (HH101). */
const WRONG_CHAIN = 101;

/** JSON-RPC through the network of `--network`. */
export function requestOf(hre: HardhatRuntimeEnvironment): RpcRequest {
  return (method, params = []) => hre.network.provider.request({ method, params });
}

/**
 * Which chain the node is of.
 *
 * @throws ChainError RPC_UNREACHABLE, ConfigurationError CHAIN_ID_MISMATCH.
 */
export async function identifyChain(request: RpcRequest, target: Target): Promise<ChainIdentity> {
  try {
    return await readChainIdentity(request);
  } catch (cause) {
    if (isWrongChain(cause)) throw wrongChain(cause, target);
    const remedy = target.isLocal
      ? 'Start one with `npx hardhat node`, or set RPC_URL to yours.'
      : 'Check RPC_URL and the key.';
    const message = `No node answers at ${target.node} (network ${target.name}).`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause, remedy, retryable: true });
  }
}

/**
 * The account that deploys and becomes the registry's admin and minter: that of WALLET_PRIVATE_KEY, or a local node's first.
 *
 * @throws ConfigurationError when there is none, or it cannot pay.
 */
export async function deployingAccount(request: RpcRequest, target: Target): Promise<string> {
  const [first] = (await request('eth_accounts')) as string[];
  if (first === undefined) {
    const message = `WALLET_PRIVATE_KEY is not set, and the node at ${target.node} has no account of its own.`;
    throw new ConfigurationError('NOT_CONFIGURED', message, { remedy: 'Set WALLET_PRIVATE_KEY.' });
  }
  const account = getAddress(first);
  if (target.network?.currency === 'FREE') return account;
  const balance = BigInt((await request('eth_getBalance', [account, 'latest'])) as string);
  const gasPrice = BigInt((await request('eth_gasPrice')) as string);
  if (balance > 0n || gasPrice === 0n) return account;
  const message = `The wallet ${account} has no ${target.network?.currency ?? 'funds'} on ${target.name}.`;
  const remedy = 'Send it enough to pay for the transactions.';
  throw new ConfigurationError('WALLET_NOT_FUNDED', message, { remedy });
}

function isWrongChain(thrown: unknown): thrown is Error {
  return thrown instanceof Error && 'number' in thrown && thrown.number === WRONG_CHAIN;
}

function wrongChain(cause: Error, target: Target): ConfigurationError {
  const actual = /chain with id (\d+)/.exec(cause.message)?.[1] ?? 'unknown';
  const message = `The node at ${target.node} is of chain ${actual}, but ${target.name} is ${target.network?.chainId}.`;
  const remedy = `Use --network with the network of chain ${actual}, or point RPC_URL at a node of ${target.name}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', message, { cause, remedy });
}
