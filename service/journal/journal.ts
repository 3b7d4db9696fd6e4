import type {
  BlockId,
  Failure,
  Issuance,
  MinedMint,
  MintTransaction,
  SignedDocument,
  Unfinished,
} from './issuance';

/** A caller's Idempotency-Key, and what it asked for. */
export interface IdempotentRequest {
  key: string;
  /** SHA-256 in hex. */
  requestHash: string;
}

/**
 * What was issued, and what is being issued: in the database before anything is sent, so that no crash loses
 * a document whose token exists. Every promise resolves when the change is durable.
 */
export interface Journal {
  /**
   * Stores a document with the state `signed`.
   *
   * @returns undefined when it was stored; the issuance that has the key already, when there is one: then
   *   nothing was stored.
   */
  add(signed: SignedDocument, request?: IdempotentRequest): Promise<Issuance | undefined>;
  find(tokenId: string): Promise<Issuance | undefined>;
  findByKey(key: string): Promise<Issuance | undefined>;
  /** Bytes of a document; undefined when there is no such issuance. */
  documentLength(tokenId: string): Promise<number | undefined>;
  /** The bytes of a document, in parts. */
  documentOf(tokenId: string): AsyncIterable<Uint8Array>;
  /** The issuances that are neither final nor failed, in the order in which they were added. */
  unfinished(): Promise<Unfinished[]>;
  /** Those of them that no node is known to have. */
  signed(): Promise<Issuance[]>;
  /** Before the transactions are sent. */
  keepTransactions(transactions: readonly MintTransaction[]): Promise<void>;
  submitted(tokenIds: readonly string[]): Promise<void>;
  mined(tokenId: string, mined: MinedMint, isFinal: boolean): Promise<void>;
  final(tokenIds: readonly string[]): Promise<void>;
  /** The block of the mint is gone, final or not: the state is `submitted` again. */
  unmined(tokenId: string): Promise<void>;
  /** Frees the Idempotency-Key: the same request may be tried again. The document's bytes are removed. */
  failed(tokenId: string, failure: Failure): Promise<void>;
  /**
   * Notes which chain the blocks are of.
   *
   * @returns false when the noted blocks were those of another chain: no final mint is in a block then.
   */
  enterChain(genesisHash: string): Promise<boolean>;
  /** The highest block of a final mint, or the highest below `below`. */
  highestFinal(below?: number): Promise<BlockId | undefined>;
  /** Final mints of this block and those above it. */
  finalSince(blockNumber: number): Promise<Unfinished[]>;
  /**
   * Removes what ended before a time (epoch milliseconds), and documents whose storing was interrupted. Gives
   * how many issuances went.
   */
  purge(endedBefore: number): Promise<number>;
  /** Removes one issuance that is final or failed, with its document. */
  remove(tokenId: string): Promise<Removal>;
}

/** What became of the wish to remove one issuance. */
export type Removal = 'removed' | 'unfinished' | 'unknown';
