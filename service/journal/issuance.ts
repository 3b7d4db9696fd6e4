/**
 * How far a document is from its signature on:
 *
 * - `signed`: it is in the journal; no transaction of it has been taken by a node, as far as is known.
 * - `submitted`: a node has taken its mint.
 * - `mined`: its token exists.
 * - `failed`: its token does not exist and will not.
 */
export type IssuanceState = 'signed' | 'submitted' | 'mined' | 'failed';

/** A document from its signature on: one row of the journal, without the document itself. */
export interface Issuance {
  /** 64 lower-case hexadecimal digits. */
  tokenId: string;
  credentialId: string;
  /** With their checksums. */
  beneficiary: string;
  holder: string;
  /** 0x-prefixed hex. */
  remark: string;
  state: IssuanceState;
  /** Of the mined mint, 0x-prefixed. */
  txHash: string | undefined;
  /** Why it failed: a stable code, and a message without secrets. */
  failure: Failure | undefined;
  /** SHA-256 of the request it answers, in hex; undefined without an Idempotency-Key. */
  requestHash: string | undefined;
  /** Epoch milliseconds. */
  createdAt: number;
}

/** Why a document's token was not made. */
export interface Failure {
  code: string;
  message: string;
}

/** A signed transaction that mints a token. There may be several for one token: with a higher fee, or another nonce. */
export interface MintTransaction {
  tokenId: string;
  /** 0x-prefixed. */
  hash: string;
  nonce: number;
  /** Signed and serialised, 0x-prefixed. */
  raw: string;
}

/** A document that is neither mined nor failed, with all transactions that were ever signed for it, the oldest first. */
export interface Unfinished {
  issuance: Issuance;
  transactions: MintTransaction[];
}
