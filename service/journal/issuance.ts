/**
 * How far a document is from its signature on:
 *
 * - `signed`: it is in the journal; no node is known to have a transaction of it.
 * - `submitted`: a node may have its mint.
 * - `mined`: its token exists, in a block that has fewer than CONFIRMATIONS blocks on top.
 * - `final`: its token exists, in a block that has CONFIRMATIONS blocks on top.
 * - `failed`: its token does not exist and will not.
 */
export type IssuanceState = 'signed' | 'submitted' | 'mined' | 'final' | 'failed';

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
  /** Of the transaction that made the token, 0x-prefixed; kept when a reorganisation takes its block. */
  txHash: string | undefined;
  /** Why it failed: a stable code, and a message without secrets. */
  failure: Failure | undefined;
  /** SHA-256 of the request it answers, in hex; undefined without an Idempotency-Key. */
  requestHash: string | undefined;
  /** Epoch milliseconds. */
  createdAt: number;
}

/** A signed document that gets an issuance. `document`: JSON in UTF-8. */
export interface SignedDocument extends Pick<
  Issuance,
  'tokenId' | 'credentialId' | 'beneficiary' | 'holder' | 'remark'
> {
  document: Uint8Array;
}

/** Why a document's token was not made. */
export interface Failure {
  code: string;
  message: string;
}

/** A block, as far as it identifies one. */
export interface BlockId {
  number: number;
  /** 0x-prefixed. */
  hash: string;
}

/** The transaction that made a token, and its block. */
export interface MinedMint {
  txHash: string;
  block: BlockId;
}

/**
 * A signed transaction that mints a token. There may be several for one token: with a higher fee, or another
 * nonce.
 */
export interface MintTransaction {
  tokenId: string;
  /** 0x-prefixed. */
  hash: string;
  nonce: number;
  /** Signed and serialised, 0x-prefixed. */
  raw: string;
}

/** An issuance that may change yet, with all transactions that were ever signed for it, the oldest first. */
export interface Unfinished {
  issuance: Issuance;
  transactions: MintTransaction[];
  /** Undefined: not mined. */
  mined: MinedMint | undefined;
}
