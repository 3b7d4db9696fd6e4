import { ChainError, ServiceError } from '../base/errors';
import { untilAborted } from '../base/until-aborted';
import type { Issuance } from '../journal/issuance';
import type { DocumentBytes, Journal } from '../journal/journal';
import type { MintQueue } from '../minting/mint-queue';

/** A document that is in the journal, so that it will be minted even if this process ends. */
export interface KeptDocument {
  credentialId: string;
  tokenId: string;
  /** Resolves with the transaction hash of the mint. It need not be awaited, and goes on without callers. */
  mint: Promise<string>;
  /**
   * Waits for the mint, but not for ever.
   *
   * @throws ServiceError ISSUANCE_UNKNOWN when the document was removed meanwhile; ChainError
   *   MINT_STILL_WAITING (retryable) when it is not mined in time; the mint's own error.
   */
  minted(this: void): Promise<MintedDocument>;
}

/** A document whose token is mined. */
export interface MintedDocument {
  /** Transaction hash of the mint, 0x-prefixed. */
  txHash: string;
  document: DocumentBytes;
}

/** The parts that minting a kept document needs. */
interface Minting {
  queue: Pick<MintQueue, 'mint'>;
  journal: Pick<Journal, 'documentOf'>;
  /** Milliseconds that a caller waits for the mint. */
  waitMs: number;
}

/** 9. and 10. Hands the document to the mint queue. */
export function keptDocument(
  { queue, journal, waitMs }: Minting,
  issuance: Issuance,
  held?: DocumentBytes,
): KeptDocument {
  const { credentialId, tokenId } = issuance;
  const mint = queue.mint(issuance);
  // Callers that wait get its error. The journal keeps it for the others.
  mint.catch(() => undefined);
  return {
    credentialId,
    tokenId,
    mint,
    async minted() {
      const txHash = await awaitMint(mint, tokenId, waitMs);
      const document = held ?? (await journal.documentOf(tokenId));
      if (document) return { txHash, document };
      throw new ServiceError('ISSUANCE_UNKNOWN', `The document of token ${tokenId} was removed meanwhile.`);
    },
  };
}

/**
 * Waits for a mint and resolves with its transaction hash. The mint goes on when nobody waits any more.
 *
 * @throws ChainError MINT_STILL_WAITING (retryable) after `waitMs`; otherwise the mint's own error.
 */
async function awaitMint(mint: Promise<string>, tokenId: string, waitMs: number): Promise<string> {
  const patience = AbortSignal.timeout(waitMs);
  try {
    return await untilAborted(patience, mint);
  } catch (cause) {
    if (!patience.aborted) throw cause;
    const message = `The mint of token ${tokenId} was not mined within ${waitMs} ms.`;
    const remedy =
      'The mint continues: ask for the document later, ' +
      'or send the request again with the same Idempotency-Key.';
    throw new ChainError('MINT_STILL_WAITING', message, { cause, remedy, retryable: true });
  }
}
