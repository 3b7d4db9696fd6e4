import { ChainError } from '../base/errors';
import type { Issuance } from '../journal/issuance';
import type { MintQueue } from '../minting/mint-queue';
import { untilAborted } from '../base/until-aborted';

/**
 * Waits for a mint and resolves with its transaction hash. The mint goes on when nobody waits any more.
 *
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) after `waitMs`; otherwise the mint's own error.
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
      'The mint continues: ask for the document later, ' +
      'or send the request again with the same Idempotency-Key.';
    throw new ChainError('MINT_NOT_CONFIRMED', message, { cause, remedy, retryable: true });
  }
}
