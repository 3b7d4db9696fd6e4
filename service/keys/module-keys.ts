import { hexlify, Signature, toBeHex, Transaction } from 'ethers';
import { SignerError } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import type { IssuerKey, ModuleSettings, ModuleWalletKey } from '../config/key-settings';
import { SECP256K1_ORDER } from '../config/setting-types';
import { verificationMethodOf } from './issuer-key';
import { openModule } from './pkcs11';
import { SignerState, type SignerReport } from './signer-state';
import { addressOf, HIGHEST_S, signerOf, type TransactionSigner } from './transaction-signer';

const SIGNATURE_BYTES = 64;

/** The wallet whose key is in a PKCS #11 module. @throws ConfigurationError PKCS11_NOT_INSTALLED */
export function moduleWallet(
  time: Time,
  { module, label, address }: ModuleWalletKey,
  logger?: Logger,
): TransactionSigner {
  const ask = openModule(time, module);
  const asked = { label, curve: 'secp256k1' } as const;
  const state = new SignerState(time, { key: 'wallet', at: placeOf(module) }, logger);

  async function sign(transaction: Transaction): Promise<string> {
    const digest = transaction.unsignedHash;
    const bytes = await ask({ kind: 'sign', ...asked, digest: Buffer.from(digest.slice(2), 'hex') });
    const signature = recoverable(bytes, digest, address);
    if (signature === undefined) throw anotherKey('SIGNER_ANSWER_WRONG', 'The signature is by');
    transaction.signature = signature;
    return transaction.serialized;
  }

  async function check(): Promise<void> {
    const { publicKey } = await ask({ kind: 'describe', ...asked });
    if (addressOf(publicKey) !== address) throw anotherKey('SIGNER_REFUSED', `"${label}" of the module is`);
  }

  function anotherKey(code: string, subject: string): SignerError {
    const remedy = 'Nothing was sent. Correct WALLET_PKCS11_KEY or WALLET_ADDRESS.';
    const message = `${subject} another key than that of WALLET_ADDRESS (${address}). ${remedy}`;
    return new SignerError(code, message, { remedy, retryable: true });
  }

  return {
    address,
    remote: state.signerWith(check),
    sign: (fields) => state.ofSignature(sign(Transaction.from(fields))),
  };
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
  if (given >= SECP256K1_ORDER) return undefined;
  const s = given > HIGHEST_S ? SECP256K1_ORDER - given : given;
  return ([0, 1] as const)
    .map((yParity) => Signature.from({ r, s: toBeHex(s, 32), yParity }))
    .find((signature) => signerOf(digest, signature) === address);
}

/**
 * Watches the issuer's key in a module, which each signing thread asks. Undefined for a pair.
 */
export function watchIssuer(time: Time, key: IssuerKey, logger: Logger) {
  if (!('module' in key)) return undefined;
  const state = new SignerState(time, { key: 'issuer', at: placeOf(key.module) }, logger);
  const ask = openModule(time, key.module);
  return {
    ...state.signerWith(async () => void (await verificationMethodOf(key, ask))),
    /** Follows a document that a thread signs. Every error passes through. */
    follow: <T>(signed: Promise<T>): Promise<T> => state.ofSignature(signed),
  };
}

function placeOf({ path, token }: ModuleSettings): SignerReport['at'] {
  return `${path}, token ${token}`;
}
