import type { PreparedDocument } from './prepared-document';
import type { Failure, Issuance, MintTransaction, Unfinished } from './issuance';

/** Whose issuances a journal is about: other wallets and registries may share the database. */
export interface JournalScope {
  chainId: number;
  /** Lower case. */
  registryAddress: string;
  /** Lower case. */
  walletAddress: string;
}

/** A caller's Idempotency-Key, and what it asked for. */
export interface IdempotentRequest {
  key: string;
  /** SHA-256 in hex. */
  requestHash: string;
}

/**
 * What was issued, and what is being issued: in the database before anything is sent, so that no crash loses a document whose token exists. Every
 * promise resolves when the change is durable.
 */
export interface Journal {
  /**
   * Stores a document with the state `signed`.
   *
   * @returns undefined when it was stored; the issuance that has the key already, when there is one: then nothing was stored.
   */
  add(prepared: PreparedDocument, request?: IdempotentRequest): Promise<Issuance | undefined>;
  find(tokenId: string): Promise<Issuance | undefined>;
  findByKey(key: string): Promise<Issuance | undefined>;
  /** The bytes of a document, in parts. */
  documentOf(tokenId: string): AsyncIterable<Uint8Array>;
  /** In the order in which they were added. */
  unfinished(): Promise<Unfinished[]>;
  /** Before the transactions are sent. */
  keepTransactions(transactions: readonly MintTransaction[]): Promise<void>;
  submitted(tokenIds: readonly string[]): Promise<void>;
  mined(tokenId: string, txHash: string): Promise<void>;
  /** Frees the Idempotency-Key: the same request may be tried again. */
  failed(tokenId: string, failure: Failure): Promise<void>;
  /** Removes what ended before a time (epoch milliseconds), and documents whose storing was interrupted. Gives how many issuances went. */
  purge(endedBefore: number): Promise<number>;
}
