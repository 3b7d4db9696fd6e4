import { toQuantity } from 'ethers';
import { check } from '../service/evidence/evidence';
import { TitleEscrow__factory } from '../typechain-types';
import { mintDirectly } from '../test/helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { collected } from '../test/helpers/evidence/collected';
import type { Size } from './measure';

const BLOCK = 100;
const GAS = toQuantity(150_000);
const ESCROW = TitleEscrow__factory.createInterface();

/** Evidence of a token with many operations, in full blocks: the times to collect and to check it. */
export async function evidence({ of }: Size): Promise<void> {
  const operations = of(1_000);
  const local = await createLocalSetup({ program: 'anvil' });
  try {
    const [, beneficiary = '', one = '', other = ''] = local.accounts;
    const { tokenId, escrow } = await mintDirectly(local, beneficiary);
    // One account's transactions keep their order within a block.
    const calls = Array.from({ length: operations }, (_, index) => {
      const data = ESCROW.encodeFunctionData('nominate', [index % 2 === 0 ? one : other, '0x01']);
      return { from: beneficiary, to: escrow, data, gas: GAS };
    });
    await mineInBlocks(local, calls);
    const [file, collecting] = await timed(() => collected(local, tokenId));
    const text = JSON.stringify(file);
    const [{ report }, checking] = await timed(() => check(JSON.parse(text)));
    const unproven = report.statements.filter(({ status, isMinor }) => status !== 'proven' && !isMinor);
    if (unproven.length > 0) throw new Error(`not proven: ${unproven[0]?.says}`);
    console.log(
      `${operations} operations in ${file.blocks.length} blocks, ${(text.length / 1e6).toFixed(1)} MB`,
    );
    console.log(`collected in ${collecting} s, checked in ${checking} s`);
  } finally {
    await local.stop();
  }
}

async function mineInBlocks({ client }: LocalSetup, calls: readonly object[]): Promise<void> {
  await client.send('evm_setAutomine', [false]);
  for (const [index, call] of calls.entries()) {
    await client.send('eth_sendTransaction', [call]);
    if ((index + 1) % BLOCK === 0 || index + 1 === calls.length) await client.send('evm_mine', []);
  }
  await client.send('evm_setAutomine', [true]);
}

async function timed<T>(work: () => Promise<T>): Promise<[T, string]> {
  const from = performance.now();
  const done = await work();
  return [done, ((performance.now() - from) / 1_000).toFixed(1)];
}
