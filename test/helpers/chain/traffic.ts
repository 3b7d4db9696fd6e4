import { mintDirectly, transferHolder, type MintedToken } from './direct-mint';
import type { LocalSetup } from './local-setup';

/** The number of tokens to mint, and how often each is transferred. */
export interface Traffic {
  tokens: number;
  rounds: number;
  /** Defaults to the registry of the setup. */
  registryAddress?: string;
}

/**
 * Mints tokens and transfers each a few times, in turns, without the service. Each transaction has its own
 * block, and each token has 5 + `rounds` events.
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
