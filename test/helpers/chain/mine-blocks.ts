import type { LocalSetup } from './local-setup';

/**
 * Mines empty blocks, one after the other. `hardhat_mine` makes many at once, but without the parent hashes
 * of a chain.
 */
export async function mineBlocks({ client }: LocalSetup, count: number): Promise<void> {
  for (let mined = 0; mined < count; mined++) await client.send('evm_mine', []);
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
