import type { LocalSetup } from './local-setup';

/**
 * Mines empty blocks, one after the other. What `hardhat_mine` makes of many at once has no parent hashes,
 * and is no chain to whoever looks at them.
 */
export async function mineBlocks({ client }: LocalSetup, count: number): Promise<void> {
  for (let mined = 0; mined < count; mined++) await client.send('evm_mine', []);
}
