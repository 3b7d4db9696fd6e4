import type {
  BlockId,
  Failure,
  Issuance,
  MinedMint,
  MintTransaction,
  SignedDocument,
  Unfinished,
} from './issuance';
import type { IssuancesPage, IssuancesQuery } from './list-issuances';

/** A caller's Idempotency-Key and the hash of its request. */
export interface IdempotentRequest {
  key: string;
  /** SHA-256 in hex. */
  requestHash: string;
}

/** A signed credential as JSON in UTF-8. `length` is in bytes. The parts can be read more than once. */
export interface DocumentBytes {
  length: number;
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/**
 * The record of issued and unfinished documents. A document is in the database before any of its transactions
 * is sent, so no crash loses a document whose token exists. Every promise resolves when the change is
 * durable.
 */
export interface Journal {
  /**
   * Stores a document with the state `signed`.
   *
   * @returns undefined when it was stored; if another issuance has the key already, that issuance, and
   *   nothing is stored.
   */
  add(signed: SignedDocument, request?: IdempotentRequest): Promise<Issuance | undefined>;
  find(tokenId: string): Promise<Issuance | undefined>;
  findByKey(key: string): Promise<Issuance | undefined>;
  list(query: IssuancesQuery): Promise<IssuancesPage>;
  /** Undefined when the token has no issuance. */
  documentOf(tokenId: string): Promise<DocumentBytes | undefined>;
  /** The issuances that are neither final nor failed, in the order in which they were added. */
  unfinished(): Promise<Unfinished[]>;
  /** The unfinished issuances that no node is known to have. */
  signed(): Promise<Issuance[]>;
  /** Stores transactions; called before they are sent. */
  keepTransactions(transactions: readonly MintTransaction[]): Promise<void>;
  submitted(tokenIds: readonly string[]): Promise<void>;
  mined(tokenId: string, mined: MinedMint, isFinal: boolean): Promise<void>;
  final(tokenIds: readonly string[]): Promise<void>;
  /** The mint's block is gone, even if it was final: the state becomes `submitted` again. */
  unmined(tokenId: string): Promise<void>;
  /** Frees the Idempotency-Key, so that the same request may be tried again, and removes the document. */
  failed(tokenId: string, failure: Failure): Promise<void>;
  /**
   * Notes the chain that the blocks belong to.
   *
   * @returns false when the noted blocks belonged to another chain; the journal's mints then have no block
   *   any more.
   */
  enterChain(genesisHash: string): Promise<boolean>;
  /** The highest block of a final mint, below `below` if that is given. */
  highestFinal(below?: number): Promise<BlockId | undefined>;
  /** Final mints in this block and those above it. */
  finalSince(blockNumber: number): Promise<Unfinished[]>;
  /**
   * Removes issuances that ended before a time (epoch milliseconds), and documents that were only partly
   * stored. It ends early when the signal aborts. Resolves to the number of removed issuances.
   */
  purge(endedBefore: number, signal?: AbortSignal): Promise<number>;
  /** Removes one issuance that is final or failed, with its document. */
  remove(tokenId: string): Promise<Removal>;
}

/** The result of removing one issuance. */
export type Removal = 'removed' | 'unfinished' | 'unknown';
