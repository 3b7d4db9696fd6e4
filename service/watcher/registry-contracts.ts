import { isError } from 'ethers';
import { TitleEscrowFactory__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { RegistryContracts } from './genuine-emitter';

/** A registry as it is found on its chain. */
export interface RegistryOnChain {
  contracts: RegistryContracts;
  /** Block in which the registry was made; nothing of it is earlier. */
  genesisBlock: number;
  /** Hash of the chain's block 0. */
  chainGenesisHash: string;
}

/**
 * Asks the registry for its factory, the factory for the contract its escrows are clones of.
 *
 * @throws ChainError REGISTRY_INVALID when the contract there is another; REGISTRY_MISSING when there is no contract at the address (retryable: it may be deployed yet).
 */
export async function findRegistry(client: RpcClient, address: string): Promise<RegistryOnChain> {
  if ((await client.getCode(address)) === '0x') {
    const remedy = 'Deploy one with `npx hardhat deploy`, or correct TOKEN_REGISTRY_ADDRESS or NET.';
    throw new ChainError('REGISTRY_MISSING', `There is no contract at ${address}. ${remedy}`, {
      remedy,
      retryable: true,
    });
  }
  const registry = TradeTrustTokenStandard__factory.connect(address, client);
  const titleEscrowFactory = await registry.titleEscrowFactory().catch((cause: unknown) => {
    throw isError(cause, 'CALL_EXCEPTION') || isError(cause, 'BAD_DATA')
      ? notARegistry(address, cause)
      : cause;
  });
  const factory = TitleEscrowFactory__factory.connect(titleEscrowFactory, client);
  const [implementation, genesis, firstBlock] = await Promise.all([
    factory.implementation(),
    registry.genesis(),
    client.getBlock(0),
  ]);
  if (!firstBlock?.hash)
    throw new ChainError('BLOCK_MISSING', 'The node has no block 0.', { retryable: true });
  return {
    contracts: {
      registry: address.toLowerCase(),
      titleEscrowFactory: titleEscrowFactory.toLowerCase(),
      titleEscrowImplementation: implementation.toLowerCase(),
    },
    genesisBlock: Number(genesis),
    chainGenesisHash: firstBlock.hash,
  };
}

function notARegistry(address: string, cause: unknown): ChainError {
  const remedy = 'Correct TOKEN_REGISTRY_ADDRESS, or NET; `npx hardhat deploy` writes the right one.';
  const message = `The contract at ${address} is not a token registry. ${remedy}`;
  return new ChainError('REGISTRY_INVALID', message, { cause, remedy });
}
