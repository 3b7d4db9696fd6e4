import type { ErrorCode } from '../base/errors';
import { registryName } from '../base/registry-name';

/**
 * The state of a document after it is signed:
 *
 * - `signed`: it is in the journal, and no node is known to have one of its transactions.
 * - `submitted`: a node may have its transaction.
 * - `mined`: its token exists, in a block that is not final yet.
 * - `final`: its token exists, in a final block.
 * - `failed`: its token does not exist and never will.
 */
export type IssuanceState = 'signed' | 'submitted' | 'mined' | 'final' | 'failed';

/** A signed document's row in the journal, without the document itself. */
export interface Issuance {
  /** 64 lower-case hexadecimal digits. */
  tokenId: string;
  credentialId: string;
  /** The token's first beneficiary. It and the holder are checksummed addresses. */
  owner: string;
  holder: string;
  /** 0x-prefixed hex. */
  remark: string;
  /** The first characters of the number of the Bill of Lading; undefined if it is not known. */
  blNumber: string | undefined;
  state: IssuanceState;
  /** Hash of the transaction that made the token, 0x-prefixed; kept when a reorganisation takes its block. */
  txHash: string | undefined;
  /** Set when the state is `failed`. The message has no secrets. */
  failure: Failure | undefined;
  /** SHA-256 of the request in hex; undefined without an Idempotency-Key. */
  requestHash: string | undefined;
  /** Epoch milliseconds. */
  createdAt: number;
  /** The place of its request in a trace, as a `traceparent`. */
  trace?: string | undefined;
}

/** The request that a document comes from. Times are in epoch milliseconds. */
export interface Origin {
  trace: string;
  receivedAt: number;
  signingAt: number;
  signedAt: number;
}

/**
 * A signed document before it is added to the journal. `document`: JSON in UTF-8, made once, then stored and
 * sent unchanged.
 */
export interface SignedDocument extends Pick<
  Issuance,
  'tokenId' | 'credentialId' | 'owner' | 'holder' | 'remark' | 'blNumber'
> {
  document: Uint8Array<ArrayBuffer>;
}

/** The reason why a token was not made: a stable code and a message. */
export interface Failure {
  code: ErrorCode;
  message: string;
}

/** Number and hash of a block. */
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

/** A signed transaction that mints a token. A token may have several, with higher fees or other nonces. */
export interface MintTransaction {
  tokenId: string;
  /** 0x-prefixed. */
  hash: string;
  nonce: number;
  /** Signed and serialised, 0x-prefixed. */
  raw: string;
  /** Epoch milliseconds. Null for transactions of earlier versions. */
  signedAt: number | null;
}

/**
 * An issuance that may still change, with all transactions that were ever signed for it, the oldest first.
 */
export interface Unfinished {
  issuance: Issuance;
  transactions: MintTransaction[];
  /** Undefined while it is not mined. */
  mined: MinedMint | undefined;
}

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
 * Identifies one journal: other issuers and registries may share the database. The wallet that mints is not
 * part of it.
 */
export interface JournalScope {
  chainId: number;
  /** Lower case. */
  registryAddress: string;
  /** The issuer's DID. */
  issuer: string;
}

/** The `scope` of a journal's rows: `<chainId>:<registry>:<DID>`. */
export function scopeName({ chainId, registryAddress, issuer }: JournalScope): string {
  return `${registryName(chainId, registryAddress)}:${issuer}`;
}

/** Name of the right to mint the documents of a journal, which one process at a time has. */
export function mintingRightOf(scope: JournalScope): string {
  return `${MINTING}${scopeName(scope)}`;
}

const MINTING = 'mint:';

/** Whether a right is one to mint. */
export function isMintingRight(right: string): boolean {
  return right.startsWith(MINTING);
}

/** Inverse of scopeName. */
export function parseScope(name: string): JournalScope {
  const [chainId, registryAddress = '', ...issuer] = name.split(':');
  return { chainId: Number(chainId), registryAddress, issuer: issuer.join(':') };
}
