import { toBeHex } from 'ethers';
import { TradeTrustTokenStandard__factory } from '../typechain-types';
import type { LocalSetup } from '../test/helpers/chain/local-setup';

/** Mints in one request to the node, and in one block unless each has its own. */
const SENT_TOGETHER = 20 as const;
const GAS_OF_A_MINT = 1_000_000;

/** Mints tokens 1, 2, 3, … as fast as the node can, with one or twenty in a block. */
export async function mintTokens(
  local: LocalSetup,
  tokens: number,
  mintsPerBlock: 1 | typeof SENT_TOGETHER,
): Promise<void> {
  const { client } = local;
  const minter = await client.getSigner(0);
  const owner = await local.account(1);
  const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, minter);
  const mint = async (token: number): Promise<void> => {
    const data = registry.interface.encodeFunctionData('mint', [owner, owner, BigInt(token), '0x']);
    const transaction = {
      from: minter.address,
      to: local.registryAddress,
      data,
      gas: toBeHex(GAS_OF_A_MINT),
    };
    await client.send('eth_sendTransaction', [transaction]);
  };
  await client.send('evm_setAutomine', [mintsPerBlock === 1]);
  for (let first = 1; first <= tokens; first += SENT_TOGETHER) {
    const numbers = Array.from({ length: SENT_TOGETHER }, (_, index) => first + index);
    await Promise.all(numbers.map(mint));
    if (mintsPerBlock > 1) await client.send('evm_mine', []);
  }
  await client.send('evm_setAutomine', [true]);
}
