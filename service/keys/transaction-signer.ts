import { concat, dataSlice, getAddress, getBytes, keccak256, Transaction, type Signature } from 'ethers';
import { isPoint, recover } from 'tiny-secp256k1';
import { orUndefined, type SignerError } from '../base/errors';
import type { TransactionFees } from '../chain/transactions';
import { SECP256K1_ORDER } from '../config/setting-types';
import { signerError, type RemoteSigner } from './signer-state';

/** A transaction without its nonce. It transfers no currency. */
export type UnnumberedTransaction = TransactionFees & {
  /** Null if it creates a contract. */
  to: string | null;
  data: string;
  chainId: number;
  gasLimit: bigint;
};

/** All fields of a transaction that are signed. */
export type TransactionFields = UnnumberedTransaction & { nonce: number };

/** Signs the transactions of one address. */
export interface TransactionSigner {
  /** With its checksum. */
  readonly address: string;
  /**
   * Returns the signed transaction, as nodes take it. It may be asked again for the same fields, after any
   * outcome.
   *
   * @throws SignerError if the signer is remote.
   */
  sign(fields: TransactionFields): Promise<string>;
  /** Undefined if the key is in this process. */
  readonly remote?: RemoteSigner;
}

/** Nodes refuse a signature with a higher s (EIP-2). */
export const HIGHEST_S = SECP256K1_ORDER / 2n;

/**
 * Checks a stranger's answer: it must be exactly this transaction, signed by this address.
 *
 * @returns the signed transaction.
 * @throws SignerError SIGNER_ANSWER_WRONG
 */
export function requireSigned(answer: unknown, fields: TransactionFields, address: string): string {
  if (typeof answer !== 'string') throw wrongAnswer('is no text');
  let signed: Transaction;
  try {
    signed = Transaction.from(answer);
  } catch (cause) {
    throw wrongAnswer('is no transaction', cause);
  }
  if (signed.signature === null) throw wrongAnswer('is not signed');
  const wanted = Transaction.from(fields);
  const others = differencesOf(signed.toJSON() as JsonFields, wanted.toJSON() as JsonFields);
  if (others.length > 0) throw wrongAnswer(`is another transaction: its ${others.join(', ')} differ`);
  // Such as an access list.
  if (signed.unsignedSerialized !== wanted.unsignedSerialized) throw wrongAnswer('has fields of its own');
  if (BigInt(signed.signature._s) > HIGHEST_S) throw wrongAnswer('has a signature that nodes refuse: high s');
  const signer = signerOf(signed.unsignedHash, signed.signature);
  if (signer !== address) throw wrongAnswer(`is signed by ${signer ?? 'no key'}, not by ${address}`);
  return signed.serialized;
}

type JsonFields = Record<string, unknown>;

/** The names of the fields that differ. An access list and the like differ as bytes. */
function differencesOf(signed: JsonFields, wanted: JsonFields): string[] {
  const names = Object.keys(wanted).filter((name) => name !== 'sig' && name !== 'accessList');
  return names.filter((name) => signed[name] !== wanted[name]);
}

/**
 * The address whose key signed the digest (SEC 1, 4.1.6), with its checksum. Undefined if no key can have
 * made this signature. Ethers recovers it too, in six times the processor time.
 */
export function signerOf(digest: string, { r, _s: s, yParity }: Signature): string | undefined {
  // Uncompressed: a byte of form, x and y. It throws if r or s is out of range.
  const point = orUndefined(() => recover(getBytes(digest), getBytes(concat([r, s])), yParity, false));
  return point ? addressOf(point) : undefined;
}

/**
 * The address of an uncompressed public key, with its checksum.
 *
 * @throws Error if it is no point of secp256k1: nobody has the key of such an address.
 */
export function addressOf(point: Uint8Array): string {
  if (!isPoint(point)) throw new Error('The public key is no point of secp256k1.');
  return getAddress(dataSlice(keccak256(point.subarray(1)), 12));
}

/** The error for an answer of WALLET_SIGNER_URL that is not what was asked for. */
export function wrongAnswer(problem: string, cause?: unknown): SignerError {
  const remedy = 'Nothing was sent. Find out who answers at WALLET_SIGNER_URL.';
  return signerError('SIGNER_ANSWER_WRONG', `The signer's answer ${problem}`, remedy, cause);
}
