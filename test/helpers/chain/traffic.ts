import { mintDirectly, transferHolder, type MintedToken } from './direct-mint';
import type { LocalSetup } from './local-setup';

/** How many tokens are minted, and how often each is handed on. */
export interface Traffic {
  tokens: number;
  rounds: number;
  /** The setup's registry unless another is named. */
  registryAddress?: string;
}

/**
 * Mints tokens and hands each on a few times, in turns, without the service having a part in it: a block for
 * each, and 5 + `rounds` events of each token.
 */
export async function makeTraffic(
  local: LocalSetup,
  { tokens, rounds, ...registry }: Traffic,
): Promise<void> {
  const [first, second] = [await local.account(1), await local.account(2)];
  const minted: MintedToken[] = [];
  for (let count = 0; count < tokens; count++) minted.push(await mintDirectly(local, first, registry));
  for (let round = 0; round < rounds; round++) {
    const [from, to] = round % 2 === 0 ? [first, second] : [second, first];
    for (const token of minted) await transferHolder(local, token, { from, to });
  }
}
