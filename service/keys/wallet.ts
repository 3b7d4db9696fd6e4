import {
  concat,
  getBytes,
  hashMessage,
  hexlify,
  Signature,
  toBeHex,
  toQuantity,
  toUtf8Bytes,
  Transaction,
} from 'ethers';
import { pointFromScalar, signRecoverable } from 'tiny-secp256k1';
import { Agent, request } from 'undici';
import * as z from 'zod';
import { codeOf, cut, SignerError, orUndefined, type ErrorCode } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl, secretMasker, secretPartsOf, splitCredentials } from '../base/mask-secrets';
import { readBounded } from '../base/read-bounded';
import { type Time, within } from '../base/time';
import type { ModuleWalletKey, RemoteKey, WalletKey } from '../config/key-settings';
import { readSettingFile, SECP256K1_ORDER } from '../config/setting-types';
import { openModule, placeOf } from './pkcs11';
import { RemoteSigner, signerError } from './signer-state';
import {
  addressOf,
  HIGHEST_S,
  requireSigned,
  signerOf,
  wrongAnswer,
  type TransactionFields,
  type TransactionSigner,
} from './transaction-signer';

/** A wallet, which signs texts too. */
export interface Wallet extends TransactionSigner {
  /**
   * Signs a text by EIP-191, so that it cannot be taken for a transaction.
   *
   * @throws SignerError if the signer is remote.
   */
  signMessage(text: string): Promise<string>;
}

/**
 * Opens the wallet that deploys, mints and administers registries.
 *
 * @param logger gets a line when a remote signer begins to fail, and when it answers again.
 * @throws ConfigurationError if a client certificate cannot be read; PKCS11_NOT_INSTALLED.
 */
export function openWallet(time: Time, key: WalletKey, logger?: Logger): Wallet {
  if ('url' in key) return jsonRpcSigner(time, key, logger);
  if ('module' in key) return moduleWallet(time, key, logger);
  return localSigner(getBytes(key.privateKey));
}

/** The last byte of a signature that recovers to an even y (Yellow Paper, appendix F). */
const FIRST_V = 27;

/** Signs with a key in this process, in a third of the processor time that ethers takes. */
function localSigner(key: Uint8Array): Wallet {
  const point = pointFromScalar(key, false);
  if (point === null) throw new Error('The private key has no public key.');
  const signDigest = (digest: string): Signature => {
    const { signature, recoveryId } = signRecoverable(getBytes(digest), key);
    return Signature.from(concat([signature, toBeHex(FIRST_V + recoveryId)]));
  };
  return signerOfDigests(addressOf(point), signDigest);
}

/** Signs transactions and texts by their hashes. */
function signerOfDigests(
  address: string,
  signDigest: (digest: string) => Signature | Promise<Signature>,
): Wallet {
  return {
    address,
    async sign(fields) {
      const transaction = Transaction.from(fields);
      transaction.signature = await signDigest(transaction.unsignedHash);
      return transaction.serialized;
    },
    signMessage: async (text) => (await signDigest(hashMessage(text))).serialized,
  };
}

/** A module or a cloud's key takes a tenth of this. */
const ANSWER_WITHIN_MS = 10_000;
/** The transaction that creates the largest contract has 100 kB in hexadecimal. */
const LARGEST_BYTES = 1_000_000;

const ANSWER = z.object({
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).nullish(),
});

/**
 * A signer that is asked by JSON-RPC: `eth_signTransaction` and `eth_sign`, as Web3Signer has them. Its
 * answers are checked like a stranger's. One that signs transactions alone refuses a text.
 */
function jsonRpcSigner(time: Time, { address, url, token, certificate }: RemoteKey, logger?: Logger): Wallet {
  const { url: bare, authorization } = splitCredentials(url);
  const credentials = token === undefined ? authorization : `Bearer ${token}`;
  const headers = {
    'content-type': 'application/json',
    ...(credentials !== undefined && { authorization: credentials }),
  };
  const identity = certificate && {
    cert: readSettingFile('WALLET_SIGNER_CERTIFICATE', certificate.path),
    key: readSettingFile('WALLET_SIGNER_CERTIFICATE_KEY', certificate.keyPath),
  };
  const dispatcher = new Agent({ connect: { timeout: ANSWER_WITHIN_MS, ...identity } });
  const at = printableUrl(url);
  const mask = secretMasker([...secretPartsOf(url), token]);
  const remote = new RemoteSigner(time, { key: 'wallet', at }, check, logger);

  async function check(): Promise<void> {
    const answer = await ask('eth_accounts', []).catch((error: unknown) => {
      // Not every signer lists its accounts; this one answers.
      if (error instanceof SignerError && error.code === 'SIGNER_REFUSED') return [address];
      throw error;
    });
    const { data: accounts } = z.array(z.string()).safeParse(answer);
    if (accounts === undefined) throw wrongAnswer('is no list of accounts');
    if (!accounts.some((one) => one.toLowerCase() === address.toLowerCase()))
      throw refused('has no key of WALLET_ADDRESS');
  }

  async function sign(fields: TransactionFields): Promise<string> {
    return requireSigned(await ask('eth_signTransaction', [callOf(address, fields)]), fields, address);
  }

  async function signMessage(text: string): Promise<string> {
    const bytes = hexlify(toUtf8Bytes(text));
    const signed = await ask('eth_sign', [address, bytes]).catch((error: unknown) => {
      // Some signers have the newer method alone.
      if (codeOf(error) === 'SIGNER_REFUSED') return ask('personal_sign', [bytes, address]);
      throw error;
    });
    const signature = orUndefined(() => Signature.from(String(signed)));
    if (signature !== undefined && signerOf(hashMessage(text), signature) === address)
      return signature.serialized;
    throw wrongAnswer(`is no signature of the text by ${address}`);
  }

  /** A connection may be closed at the moment of a question, so one that breaks is asked once more. */
  async function ask(method: string, params: unknown[]): Promise<unknown> {
    const { status, body } = await within(time, ANSWER_WITHIN_MS, (late) =>
      post(method, params, late)
        .catch((cause: unknown) => {
          if (!late.aborted) return post(method, params, late);
          throw cause;
        })
        .catch((cause: unknown) => {
          const noAnswer = `does not answer within ${ANSWER_WITHIN_MS / 1000} s`;
          throw unreachable(late.aborted ? noAnswer : 'cannot be reached', cause);
        }),
    );
    const { data } = ANSWER.safeParse(orUndefined((): unknown => JSON.parse(String(body))));
    // Masked before it is cut, because a part of a secret would not be recognised later.
    if (data?.error) throw refused(`refuses: ${cut(mask(data.error.message))}`);
    if (status === 401 || status === 403)
      throw refused(`answers ${status}: it wants another token or certificate`);
    if (status >= 300) throw unreachable(`answers ${status}, not like a signer`);
    if (data?.result === undefined) throw wrongAnswer('is not one of JSON-RPC');
    return data.result;
  }

  async function post(method: string, params: unknown[], signal: AbortSignal) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const answer = await request(bare, { method: 'POST', headers, body, signal, dispatcher });
    return { status: answer.statusCode, body: await readBounded(answer.body, LARGEST_BYTES) };
  }

  function unreachable(problem: string, cause?: unknown): SignerError {
    const remedy = 'Start it, or correct WALLET_SIGNER_URL.';
    return signerError('SIGNER_UNREACHABLE', `The signer at ${at} ${problem}`, remedy, cause);
  }

  function refused(problem: string): SignerError {
    const remedy = 'Correct its configuration, WALLET_ADDRESS, or what proves who asks.';
    return signerError('SIGNER_REFUSED', `The signer at ${at} ${problem}`, remedy);
  }

  return {
    address,
    remote,
    sign: (fields) => remote.follow(sign(fields)),
    signMessage: (text) => remote.follow(signMessage(text)),
  };
}

/** A transaction as the parameter of `eth_signTransaction`. */
function callOf(from: string, fields: TransactionFields): object {
  const { to, data, chainId, nonce, gasLimit } = fields;
  const fees =
    fields.type === 2
      ? {
          maxFeePerGas: toQuantity(fields.maxFeePerGas),
          maxPriorityFeePerGas: toQuantity(fields.maxPriorityFeePerGas),
        }
      : { gasPrice: toQuantity(fields.gasPrice) };
  return {
    from,
    ...(to !== null && { to }),
    data,
    value: '0x0',
    gas: toQuantity(gasLimit),
    nonce: toQuantity(nonce),
    chainId: toQuantity(chainId),
    ...fees,
  };
}

const SIGNATURE_BYTES = 64;

/** The wallet whose key is in a PKCS #11 module. @throws ConfigurationError PKCS11_NOT_INSTALLED */
function moduleWallet(time: Time, { module, label, address }: ModuleWalletKey, logger?: Logger): Wallet {
  const ask = openModule(time, module);
  const key = { label, curve: 'secp256k1' } as const;
  const remote = new RemoteSigner(time, { key: 'wallet', at: placeOf(module) }, check, logger);

  async function signDigest(digest: string): Promise<Signature> {
    const bytes = await ask({ kind: 'sign', ...key, digest: Buffer.from(digest.slice(2), 'hex') });
    const signature = recoverable(bytes, digest, address);
    if (signature === undefined) throw anotherKey('SIGNER_ANSWER_WRONG', 'The signature is by');
    return signature;
  }

  async function check(): Promise<void> {
    const { publicKey } = await ask({ kind: 'describe', ...key });
    if (addressOf(publicKey) !== address) throw anotherKey('SIGNER_REFUSED', `"${label}" of the module is`);
  }

  function anotherKey(code: ErrorCode, subject: string): SignerError {
    const remedy = 'Nothing was sent. Correct WALLET_PKCS11_KEY or WALLET_ADDRESS.';
    return signerError(code, `${subject} another key than that of WALLET_ADDRESS (${address})`, remedy);
  }

  return { ...signerOfDigests(address, (digest) => remote.follow(signDigest(digest))), remote };
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
  const [r, anyS] = [hexlify(bytes.subarray(0, 32)), BigInt(hexlify(bytes.subarray(32)))];
  // No key makes an s of the order or more.
  if (anyS >= SECP256K1_ORDER) return undefined;
  const s = anyS > HIGHEST_S ? SECP256K1_ORDER - anyS : anyS;
  return ([0, 1] as const)
    .map((yParity) => Signature.from({ r, s: toBeHex(s, 32), yParity }))
    .find((signature) => signerOf(digest, signature) === address);
}
