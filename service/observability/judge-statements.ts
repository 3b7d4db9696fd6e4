import { ServiceError } from '../base/errors';
import type { IssuanceState } from '../journal/issuance';

/** The journal's entry of a token. */
export interface JournalStatement {
  /** 64 lower-case hexadecimal digits. */
  tokenId: string;
  state: IssuanceState;
  /** The error code of a failed mint. */
  failure: string | undefined;
  /** The transaction that minted the token, and its block. */
  txHash: string | undefined;
  block: number | undefined;
}

/** An event of a token's mint. Its block had CONFIRMATIONS blocks on top when it was read. */
export interface MintedEvent {
  txHash: string;
  block: number;
}

/** Both sides' statements about a token. */
export interface Statements {
  journal: JournalStatement;
  /** The mint events whose block is on the chain, as far as the watcher knows. */
  minted: readonly MintedEvent[];
}

/** A range of blocks that the watcher has read completely. */
export interface SeenBlocks {
  first: number;
  last: number;
}

/** A kind of contradiction between journal and watcher. */
export type Contradiction = keyof typeof CONTRADICTIONS;

const CONTRADICTIONS = {
  FAILED_MINT_HAS_TOKEN: {
    message: 'The journal says that the mint failed, the watcher that it made the token.',
    remedy: 'If the token exists, nobody has its document: have it returned, and burn it.',
  },
  OPEN_MINT_HAS_TOKEN: {
    message: 'The journal says that the token is not minted yet, the watcher that it is.',
    remedy: 'If the token exists, the mint queue does not see it: restart the service.',
  },
  MINT_WITHOUT_EVENT: {
    message: 'The journal says that the token was minted, the watcher has read that block and seen no mint.',
    remedy: 'If the token exists, subscribers did not get its events; otherwise the document has no token.',
  },
  MINTED_BY_ANOTHER_TRANSACTION: {
    message: 'The journal says that one transaction made the token, the watcher that another did.',
    remedy: 'If the token exists, the hash in the answer is wrong; otherwise the document has no token.',
  },
} as const;

/**
 * Returns the contradiction between the two, or undefined if both can be right. A mined token is compared
 * only if its block is known and within `seen`: the blocks that the watcher has read and whose events were
 * not purged. After a local chain was restarted, the block is unknown.
 */
export function contradictionIn(
  { journal, minted }: Statements,
  seen: SeenBlocks,
): Contradiction | undefined {
  const isMade = minted.length > 0;
  switch (journal.state) {
    case 'failed':
      return isMade ? 'FAILED_MINT_HAS_TOKEN' : undefined;
    case 'signed':
    case 'submitted':
      return isMade ? 'OPEN_MINT_HAS_TOKEN' : undefined;
    case 'mined':
    case 'final':
      if (journal.block === undefined || journal.block < seen.first || journal.block > seen.last)
        return undefined;
      if (minted.some(({ txHash }) => txHash === journal.txHash)) return undefined;
      return isMade ? 'MINTED_BY_ANOTHER_TRANSACTION' : 'MINT_WITHOUT_EVENT';
  }
}

/** The error that is logged for a contradiction. */
export function contradictionError(contradiction: Contradiction, tokenId: string): ServiceError {
  const { message, remedy } = CONTRADICTIONS[contradiction];
  const look = `Look at it with \`npx tdoc token ${tokenId}\`.`;
  const whole = `${look} ${remedy} See docs/operations.md, "Contradictions".`;
  return new ServiceError(contradiction, message, { remedy: whole });
}
