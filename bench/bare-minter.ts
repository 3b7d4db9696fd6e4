import { Wallet, type JsonRpcProvider } from 'ethers';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../typechain-types';

/**
 * A funded account of every Hardhat node that nothing else here uses; it becomes a minter for the comparison.
 */
const BARE_MINTER_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/** A wallet that mints without documents. */
export interface BareMinter {
  wallet: Wallet;
  chainId: bigint;
  /** Connected to the wallet. */
  registry: TradeTrustTokenStandard;
}

/** Gives the minter role to another wallet than the service's, so that the two do not share nonces. */
export async function createBareMinter(
  client: JsonRpcProvider,
  registryAddress: string,
): Promise<BareMinter> {
  const wallet = new Wallet(BARE_MINTER_KEY, client);
  const admin = TradeTrustTokenStandard__factory.connect(registryAddress, await client.getSigner(0));
  await (await admin.grantRole(await admin.MINTER_ROLE(), wallet.address)).wait();
  const { chainId } = await client.getNetwork();
  return { wallet, chainId, registry: TradeTrustTokenStandard__factory.connect(registryAddress, wallet) };
}
