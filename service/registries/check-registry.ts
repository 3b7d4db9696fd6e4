import { ChainError, ConfigurationError, RequestError, ServiceError } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { untilAborted } from '../base/until-aborted';
import { createChainCheck, createRpcClient, type RpcClient } from '../chain/rpc-client';
import type { FollowedRegistry } from '../config/followed-registries';
import { isReverted } from '../chain/refusals';
import { registryInterface } from '../registry/abi';
import { createRegistryFinder } from '../registry/registry-contracts';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';

const WITHIN_MS = 10_000;

/** Registries of version 4 have the same queries, but mint without a remark. */
const MINT_OF_VERSION_5 = registryInterface.getFunction('mint').selector;

/**
 * Checks that the node of the registry's network answers and is of that chain, and that the address is a
 * token registry of version 5.
 *
 * @throws RequestError CHAIN_ID_MISMATCH, REGISTRY_MISSING, REGISTRY_INVALID; ChainError RPC_UNREACHABLE,
 *   RPC_KEY_REFUSED (both retryable) if the node cannot answer now.
 */
export async function checkRegistry(registry: FollowedRegistry): Promise<void> {
  const { network, rpcUrl } = registry;
  const client = createRpcClient(rpcUrl, network);
  try {
    await untilAborted(AbortSignal.timeout(WITHIN_MS), check(client, registry));
  } catch (cause) {
    // A provider's node may lag behind the one that named the newest block.
    if (cause instanceof ServiceError && cause.code !== 'BLOCK_MISSING') throw cause;
    const message = `The node at ${printableUrl(rpcUrl)} does not answer as it should. Try again later.`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
  } finally {
    client.destroy();
  }
}

async function check(client: RpcClient, { network, rpcUrl, address }: FollowedRegistry): Promise<void> {
  await createChainCheck(client, rpcUrl, network)().catch((cause: unknown) => {
    if (!(cause instanceof ConfigurationError)) throw cause;
    const { name, chainId } = network;
    const message = `The node at ${printableUrl(rpcUrl)} is not of ${name} (chain id ${chainId}).`;
    throw refused(cause.code, `${message} Correct the network, or RPC_URL of the service.`, cause);
  });
  const notARegistry = (cause: unknown): never => {
    const message = `The contract at ${address} on ${network.name} is not a token registry of version 5.`;
    throw refused('REGISTRY_INVALID', `${message} Correct the address or the network.`, cause);
  };
  await createRegistryFinder(client, address)().catch((cause: unknown) => {
    if (cause instanceof ChainError && cause.code === 'REGISTRY_MISSING') {
      const message = `There is no contract at ${address} on ${network.name}.`;
      throw refused(cause.code, `${message} Correct the address or the network.`, cause);
    }
    const isOther = cause instanceof ChainError && cause.code === 'REGISTRY_INVALID';
    throw isOther || isReverted(cause) ? notARegistry(cause) : cause;
  });
  const registry = TradeTrustTokenStandard__factory.connect(address, client);
  const isVersion5 = await registry.supportsInterface(MINT_OF_VERSION_5);
  if (!isVersion5) notARegistry(undefined);
}

function refused(code: string, message: string, cause: unknown): RequestError {
  return new RequestError(code, message, { cause });
}
