import { Wallet, type JsonRpcProvider } from 'ethers';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../typechain-types';

/** A funded account of every Hardhat node that nobody else here uses, made a minter for the comparison. */
const BARE_MINTER_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/** Who mints without a document. */
export interface BareMinter {
  wallet: Wallet;
  chainId: bigint;
  /** Called as the wallet. */
  registry: TradeTrustTokenStandard;
}

/** Gives another wallet than the service's the minter role: the two do not take each other's nonces. */
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
