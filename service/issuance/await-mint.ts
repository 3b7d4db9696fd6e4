import { ChainError } from '../base/errors';
import { untilAborted } from '../base/until-aborted';

/**
 * Waits for a mint and resolves with its transaction hash. The mint goes on when nobody waits any more.
 *
 * @throws ChainError MINT_NOT_CONFIRMED (retryable) after `waitMs`; otherwise the mint's own error.
 */
export async function awaitMint(mint: Promise<string>, tokenId: string, waitMs: number): Promise<string> {
  const patience = AbortSignal.timeout(waitMs);
  try {
    return await untilAborted(patience, mint);
  } catch (cause) {
    if (!patience.aborted) throw cause;
    const message = `The mint of token ${tokenId} was not mined within ${waitMs} ms.`;
    const remedy =
      'The mint continues: ask for the document later, ' +
      'or send the request again with the same Idempotency-Key.';
    throw new ChainError('MINT_NOT_CONFIRMED', message, { cause, remedy, retryable: true });
  }
}
