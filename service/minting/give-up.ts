import { saysTokenExists } from '../registry/simulate-mint';
import { ChainError } from '../errors';
import type { Mint } from './mint';
import type { QueueParts } from './queue-parts';

/**
 * Ends a mint that cannot be made, if that is certain: the token does not exist, and at a block that has CONFIRMATIONS blocks on top every nonce that
 * could make it is used. Until then the mint is deferred and tried again. The registry refuses a token that it has, too: so it is looked for first.
 *
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) when one node says that the token exists, and another, which is behind, does not know by which
 *   transaction; whatever the node answers.
 */
export async function giveUp(parts: QueueParts, mint: Mint, error: ChainError): Promise<void> {
  const { chain, recorder, states, timing, logger } = parts;
  const { tokenId } = mint.issuance;
  const mined = await chain.findMint(
    tokenId,
    mint.transactions.map(({ hash }) => hash),
  );
  if (mined !== undefined) return recordMined(parts, mint, mined);
  if (saysTokenExists(error)) {
    const message = `Token ${tokenId} exists, but the node does not know it yet.`;
    throw new ChainError('MINT_NOT_CONFIRMED', message, { cause: error, retryable: true });
  }
  if (!(await mayStillBeMade(parts, mint))) return recorder.failed(mint, error);
  logger.warn({ tokenId, error }, 'mint deferred: it cannot be made now, and may have been made');
  states.defer(mint, timing.patienceMs);
}

/** Whether the token exists, or may yet be made by what was sent, as far as is certain. */
export async function mayStillBeMade({ chain }: QueueParts, mint: Mint): Promise<boolean> {
  const possible = mint.transactions.filter(({ mayBeTaken }) => mayBeTaken);
  if (possible.length === 0) return false;
  const deep = chain.deepBelow(await chain.head());
  if (deep < 0) return true;
  for (const wallet of new Set(possible.map(({ from }) => from))) {
    const used = await chain.count(wallet, deep);
    if (possible.some(({ from, nonce }) => from === wallet && nonce >= used)) return true;
  }
  return chain.existsAt(mint.issuance.tokenId, deep);
}

/** The token was found: its mint is final where its block is deep enough, which is at once where no confirmations are asked for. */
export function recordMined(
  { recorder, chain }: QueueParts,
  mint: Mint,
  mined: NonNullable<Mint['mined']>,
): void {
  recorder.mined(mint, mined, chain.deepBelow(mined.block.number) >= mined.block.number);
}
