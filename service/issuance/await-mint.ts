import { ChainError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import type { MintQueue } from '../minting/mint-queue';
import { untilAborted } from '../base/until-aborted';

/**
 * Resolves with the hash of the mint, which goes on when nobody waits any more.
 *
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) after `waitMs`; what became of the mint.
 */
export async function awaitMint(
  queue: Pick<MintQueue, 'mint'>,
  issuance: Issuance,
  waitMs: number,
): Promise<string> {
  const patience = AbortSignal.timeout(waitMs);
  try {
    return await untilAborted(patience, queue.mint(issuance));
  } catch (cause) {
    if (!patience.aborted) throw cause;
    const message = `The mint of token ${issuance.tokenId} was not mined within ${waitMs} ms.`;
    const remedy =
      'It goes on by itself: ask for the document later, or send the request again with the same Idempotency-Key.';
    throw new ChainError('MINT_NOT_CONFIRMED', message, { cause, remedy, retryable: true });
  }
}
