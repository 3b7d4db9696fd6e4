import { ChainError, codeOf, ConfigurationError, RequestError, ServiceError } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { untilAborted } from '../base/until-aborted';
import { headNumberOf } from '../chain/read-chain';
import { createChainCheck, createRpcClient, type RpcClient } from '../chain/rpc-client';
import type { FollowedRegistry } from '../config/followed-registries';
import { isNotImplemented } from '../chain/refusals';
import { registryInterface } from '../registry/abi';
import { createRegistryFinder } from '../registry/registry-contracts';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';

const WITHIN_MS = 10_000;

/** Registries of version 4 have the same queries, but mint without a remark. */
const MINT_OF_VERSION_5 = registryInterface.getFunction('mint').selector;

/**
 * Checks that the node of the registry's network answers and is of that chain, that the address is a token
 * registry of version 5, and that the chain has its start block.
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
    const isOfNode = ['BLOCK_MISSING', 'ANSWER_MALFORMED'].includes(codeOf(cause) ?? '');
    if (cause instanceof ServiceError && !isOfNode) throw cause;
    const message = `The node at ${printableUrl(rpcUrl)} does not answer as it should. Try again later.`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
  } finally {
    client.destroy();
  }
}

async function check(client: RpcClient, registry: FollowedRegistry): Promise<void> {
  const { network, rpcUrl, address, startBlock } = registry;
  await createChainCheck(client, rpcUrl, network)().catch((cause: unknown) => {
    if (!(cause instanceof ConfigurationError)) throw cause;
    const { name, chainId } = network;
    const message = `The node at ${printableUrl(rpcUrl)} is not of ${name} (chain id ${chainId}).`;
    throw refused(cause.code, `${message} Correct the network, or RPC_URL of the service.`, cause);
  });
  const notARegistry = (cause: unknown): RequestError => {
    const message = `The contract at ${address} on ${network.name} is not a token registry of version 5.`;
    return refused('REGISTRY_INVALID', `${message} Correct the address or the network.`, cause);
  };
  await createRegistryFinder(client, address)().catch((cause: unknown) => {
    if (cause instanceof ChainError && cause.code === 'REGISTRY_MISSING') {
      const message = `There is no contract at ${address} on ${network.name}.`;
      throw refused(cause.code, `${message} Correct the address or the network.`, cause);
    }
    throw codeOf(cause) === 'REGISTRY_INVALID' ? notARegistry(cause) : cause;
  });
  const contract = TradeTrustTokenStandard__factory.connect(address, client);
  const isVersion5 = await contract.supportsInterface(MINT_OF_VERSION_5).catch((cause: unknown) => {
    throw isNotImplemented(cause) ? notARegistry(cause) : cause;
  });
  if (!isVersion5) throw notARegistry(undefined);
  if (startBlock === undefined) return;
  const head = await headNumberOf(client);
  if (startBlock <= head) return;
  const message = `/startBlock is ${startBlock}, but the newest block of ${network.name} is ${head}.`;
  const remedy = 'Give a block that exists, or leave it out for the first block of the registry.';
  throw refused('REGISTRY_INVALID', `${message} ${remedy}`, undefined);
}

function refused(code: string, message: string, cause: unknown): RequestError {
  return new RequestError(code, message, { cause });
}
