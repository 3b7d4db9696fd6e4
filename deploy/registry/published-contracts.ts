import { constants } from '@tradetrust-tt/token-registry';
import { getAddress } from 'ethers';

/**
 * The v5 contracts that TradeTrust publishes on a chain. Addresses have their checksum, which some of the
 * package's do not have.
 */
export interface PublishedContracts {
  readonly titleEscrowFactory: string;
  readonly tokenImplementation: string;
  readonly deployer: string;
}

/**
 * What the registry's package says is published on a chain (its `contractAddress` constants); undefined:
 * nothing.
 */
export function publishedContractsOf(chainId: number): PublishedContracts | undefined {
  const { TitleEscrowFactory, TokenImplementation, Deployer } = constants.contractAddress;
  const titleEscrowFactory = TitleEscrowFactory[chainId];
  const tokenImplementation = TokenImplementation[chainId];
  const deployer = Deployer[chainId];
  if (!titleEscrowFactory || !tokenImplementation || !deployer) return undefined;
  return {
    titleEscrowFactory: getAddress(titleEscrowFactory),
    tokenImplementation: getAddress(tokenImplementation),
    deployer: getAddress(deployer),
  };
}
