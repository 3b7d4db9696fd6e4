import { mintDirectly, transferHolder, type MintedToken } from './direct-mint';
import type { LocalSetup } from './local-setup';

/**
 * Mints tokens and transfers each a few times, in turns, without the service. Each transaction has its own
 * block, and each token has 5 + `rounds` events.
 *
 * @param options.registryAddress defaults to that of the setup.
 */
export async function makeTraffic(
  local: LocalSetup,
  { tokens, rounds, ...registry }: { tokens: number; rounds: number; registryAddress?: string },
): Promise<void> {
  const [first, second] = [await local.account(1), await local.account(2)];
  const minted: MintedToken[] = [];
  for (let count = 0; count < tokens; count++) minted.push(await mintDirectly(local, first, registry));
  for (let round = 0; round < rounds; round++) {
    const [from, to] = round % 2 === 0 ? [first, second] : [second, first];
    for (const token of minted) await transferHolder(local, token, { from, to });
  }
}
