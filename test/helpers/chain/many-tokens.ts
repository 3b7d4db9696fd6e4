import { randomBytes } from 'node:crypto';
import { TradeTrustTokenStandard__factory } from '../../../typechain-types';
import { mineTogether } from './transactions';
import { DEPLOYER, type LocalSetup } from './local-setup';

const REGISTRY = TradeTrustTokenStandard__factory.createInterface();
/** As many mints as the gas limit of a block allows. */
const MOST_IN_A_BLOCK = 25;

/** Mints this many tokens at the registry itself, many in a block, as fast as the local node can. */
export async function mintManyTokens(local: LocalSetup, count: number): Promise<void> {
  const [beneficiary, holder] = [await local.account(1), await local.account(2)];
  const mint = (): string =>
    REGISTRY.encodeFunctionData('mint', [
      beneficiary,
      holder,
      BigInt(`0x${randomBytes(32).toString('hex')}`),
      '0x',
    ]);
  for (let left = count; left > 0; left -= MOST_IN_A_BLOCK) {
    const length = Math.min(left, MOST_IN_A_BLOCK);
    const calls = Array.from({ length }, () => ({ from: DEPLOYER, to: local.registryAddress, data: mint() }));
    await mineTogether(local.client, calls);
  }
}
