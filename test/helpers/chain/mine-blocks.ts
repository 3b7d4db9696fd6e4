import type { LocalSetup } from './local-setup';

/**
 * Mines empty blocks, one after the other, with one request. `hardhat_mine` makes many at once too, but
 * without the parent hashes of a chain.
 */
export async function mineBlocks({ node }: LocalSetup, count: number): Promise<void> {
  const call = { jsonrpc: '2.0', id: 1, method: 'evm_mine', params: [] };
  const body = JSON.stringify(Array<object>(count).fill(call));
  const headers = { 'Content-Type': 'application/json' };
  const answer = await (await fetch(node.url, { method: 'POST', headers, body })).text();
  if (answer.includes('"error"')) throw new Error(answer);
}

/** Runs `work` while blocks are mined only by `evm_mine`. */
export async function withoutMining({ client }: LocalSetup, work: () => Promise<void>): Promise<void> {
  await client.send('evm_setAutomine', [false]);
  try {
    await work();
  } finally {
    await client.send('evm_setAutomine', [true]);
    await client.send('evm_mine', []);
  }
}
