import { toQuantity } from 'ethers';
import { check } from '../service/evidence/evidence';
import { TitleEscrow__factory } from '../typechain-types';
import { mintDirectly } from '../test/helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { collected } from '../test/helpers/evidence-files';
import type { Size } from './measure';

const BLOCK = 100;
const ESCROW = TitleEscrow__factory.createInterface();

/**
 * Evidence of a token with many operations: the times to collect and to check it. First the operations fill
 * blocks, then each has a block of its own, amid transactions of others.
 */
export async function evidence({ of }: Size): Promise<void> {
  const operations = of(1_000);
  await measure(operations, (calls) => chunks(calls, BLOCK));
  await measure(operations, (calls, others) => calls.map((call) => [call, ...others]));
}

type Call = Record<'from' | 'to' | 'gas', string> & { data?: string };

/** @param inBlocks distributes the operations over blocks. `others`: transactions of another account. */
async function measure(
  operations: number,
  inBlocks: (calls: Call[], others: Call[]) => Call[][],
): Promise<void> {
  await using local = await createLocalSetup({ program: 'anvil' });
  const [, beneficiary = '', one = '', other = ''] = local.accounts;
  const { tokenId, escrow } = await mintDirectly(local, beneficiary);
  // One account's transactions keep their order within a block.
  const calls = Array.from({ length: operations }, (_, index): Call => {
    const data = ESCROW.encodeFunctionData('nominate', [index % 2 === 0 ? one : other, '0x01']);
    return { from: beneficiary, to: escrow, data, gas: toQuantity(150_000) };
  });
  const others = Array.from({ length: BLOCK }, (): Call => ({ from: other, to: one, gas: '0x5208' }));
  const mined = inBlocks(calls, others);
  await mineInBlocks(local, mined);
  const [file, collecting] = await timed(() => collected(local, tokenId));
  const text = JSON.stringify(file);
  const [{ report }, checking] = await timed(() => check(JSON.parse(text)));
  const unproven = report.statements.filter(({ status, isMinor }) => status !== 'proven' && !isMinor);
  if (unproven.length > 0) throw new Error(`not proven: ${unproven[0]?.says}`);
  const megabytes = (text.length / 1e6).toFixed(1);
  console.log(`${operations} operations in ${mined.length} blocks of ${mined[0]?.length} transactions:`);
  console.log(`collected in ${collecting} s, checked in ${checking} s, ${megabytes} MB`);
}

async function mineInBlocks({ client, node }: LocalSetup, blocks: readonly Call[][]): Promise<void> {
  await client.send('evm_setAutomine', [false]);
  for (const calls of blocks) {
    const method = 'eth_sendTransaction';
    const batch = calls.map((call, id) => ({ jsonrpc: '2.0', id, method, params: [call] }));
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(node.url, { method: 'POST', headers, body: JSON.stringify(batch) });
    const refused = ((await response.json()) as { error?: object }[]).find(({ error }) => error);
    if (refused) throw new Error(JSON.stringify(refused.error));
    await client.send('evm_mine', []);
  }
  await client.send('evm_setAutomine', [true]);
}

function chunks<T>(list: readonly T[], size: number): T[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, index) => list.slice(index * size, (index + 1) * size));
}

async function timed<T>(work: () => Promise<T>): Promise<[T, string]> {
  const from = performance.now();
  const done = await work();
  return [done, ((performance.now() - from) / 1_000).toFixed(1)];
}
