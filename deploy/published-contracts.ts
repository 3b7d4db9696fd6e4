import { constants } from '@tradetrust-tt/token-registry';
import { getAddress } from 'ethers';

/**
 * The v5 contracts that TradeTrust publishes on a chain. All addresses have a checksum; some in the package
 * do not.
 */
export interface PublishedContracts {
  readonly titleEscrowFactory: string;
  readonly tokenImplementation: string;
  readonly deployer: string;
}

/**
 * The published contracts according to the registry's package (`contractAddress`). Undefined if there are
 * none.
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
