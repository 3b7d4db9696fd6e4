import { hexlify, Signature, toBeHex, Transaction } from 'ethers';
import { SignerError } from '../base/errors';
import type { Logger } from '../base/logger';
import type { IssuerKey, ModuleKey, ModuleWalletKey } from '../config/key-settings';
import { ORDER } from '../config/setting-types';
import { verificationMethodOf } from './issuer-key';
import { openModule, type ModuleClient } from './pkcs11';
import { type RemoteSigner, SignerState, type SignerReport } from './signer-state';
import {
  addressOf,
  HIGHEST_S,
  signerOf,
  type TransactionFields,
  type TransactionSigner,
} from './transaction-signer';

const SIGNATURE_BYTES = 64;

/** The wallet whose key is in a PKCS #11 module. */
export class ModuleWallet implements TransactionSigner {
  readonly address: string;
  readonly remote: RemoteSigner;
  readonly #client: ModuleClient;
  readonly #asked: { label: string; curve: 'secp256k1' };
  readonly #state: SignerState;

  /** @throws ConfigurationError PKCS11_NOT_INSTALLED */
  constructor(key: ModuleWalletKey, logger: Logger | undefined) {
    this.address = key.address;
    this.#client = openModule(key.module).client;
    this.#asked = { label: key.label, curve: 'secp256k1' };
    this.#state = new SignerState({ key: 'wallet', at: placeOf(key) }, logger);
    this.remote = {
      check: () => this.#state.ofCheck(this.#check()),
      report: () => this.#state.report(),
    };
  }

  sign(fields: TransactionFields): Promise<string> {
    return this.#state.ofSignature(this.#sign(Transaction.from(fields)));
  }

  async #sign(transaction: Transaction): Promise<string> {
    const digest = transaction.unsignedHash;
    const bytes = await this.#client.sign(this.#asked, Buffer.from(digest.slice(2), 'hex'));
    const signature = recoverable(bytes, digest, this.address);
    if (signature === undefined) throw this.#anotherKey('SIGNER_ANSWER_WRONG', 'The signature is by');
    transaction.signature = signature;
    return transaction.serialized;
  }

  async #check(): Promise<void> {
    const { publicKey } = await this.#client.describe(this.#asked);
    if (addressOf(publicKey) !== this.address)
      throw this.#anotherKey('SIGNER_REFUSED', `"${this.#asked.label}" of the module is`);
  }

  #anotherKey(code: string, subject: string): SignerError {
    const remedy = 'Nothing was sent. Correct WALLET_PKCS11_KEY or WALLET_ADDRESS.';
    const message = `${subject} another key than that of WALLET_ADDRESS (${this.address}). ${remedy}`;
    return new SignerError(code, message, { remedy, retryable: true });
  }
}

/**
 * Completes a module's signature: modules give any s, of which nodes take the lower one (EIP-2), and do not
 * tell the parity, which `ecrecover` needs.
 *
 * @param bytes r and s.
 * @returns undefined if it is not by the key of this address.
 */
function recoverable(bytes: Uint8Array, digest: string, address: string): Signature | undefined {
  if (bytes.length !== SIGNATURE_BYTES) return undefined;
  const [r, given] = [hexlify(bytes.subarray(0, 32)), BigInt(hexlify(bytes.subarray(32)))];
  // No key makes an s of the order or more.
  if (given >= ORDER) return undefined;
  const s = given > HIGHEST_S ? ORDER - given : given;
  return ([0, 1] as const)
    .map((yParity) => Signature.from({ r, s: toBeHex(s, 32), yParity }))
    .find((signature) => signerOf(digest, signature) === address);
}

/** The signer of the issuer's key, as signing threads use it: each of them asks the module itself. */
export interface WatchedSigner extends RemoteSigner {
  /** Follows a document that a thread signs. Every error passes through. */
  follow<T>(this: void, signed: Promise<T>): Promise<T>;
}

/** Watches the issuer's key in a module. Undefined for a pair. */
export function watchIssuer(key: IssuerKey, logger: Logger): WatchedSigner | undefined {
  if (!('module' in key)) return undefined;
  const state = new SignerState({ key: 'issuer', at: placeOf(key) }, logger);
  const { client } = openModule(key.module);
  return {
    check: () => state.ofCheck(verificationMethodOf(key, client).then(() => undefined)),
    report: () => state.report(),
    follow: (signed) => state.ofSignature(signed),
  };
}

function placeOf({ module: { path, token } }: ModuleKey): SignerReport['at'] {
  return `${path}, token ${token}`;
}
