import { rmSync } from 'node:fs';
import { systemTime } from '../../service/base/time';
import { messageOf, ServiceError } from '../../service/base/errors';
import { printableUrl } from '../../service/base/mask-secrets';
import { readSettings } from '../../service/config/config';
import { pathsOf } from '../../service/config/tenant';
import { wrong } from '../../service/config/setting-types';
import {
  issuerKeyOf,
  moduleOf,
  signingKeysOf,
  walletKeyOf,
  type IssuerKey,
  type ModuleKey,
  type WalletKey,
} from '../../service/config/key-settings';
import type { Settings } from '../../service/config/settings';
import { verificationMethodOf } from '../../service/keys/issuer-key';
import { openModule } from '../../service/keys/pkcs11';
import { addressOf } from '../../service/keys/transaction-signer';
import { openWallet } from '../../service/keys/wallet';
import { p256Multibase } from '../../service/base/did-key-pair';
import type { Answer } from '../answer';

/** A key of the settings. Nothing of it is secret. */
interface ListedKey {
  key: 'wallet' | 'issuer' | 'webhooks' | 'webhooks, next';
  /** The place of the private key: a setting, a signer's URL, or a module. */
  place: string;
  /** An address, a verification method and its key, or a key id. Null if it is not known now. */
  public: string | null;
  /** The operations that its place allows. */
  uses: string[];
  /** Null if it is not known now. */
  isExtractable: boolean | null;
  /** The reason why it cannot sign now. */
  problem: { code: string; message: string } | null;
}

/**
 * Lists each key of the settings: its place, its public part, and what it may do. The answer is yes if all
 * can sign.
 *
 * @param options `retry`: a PIN that was refused may be tried again.
 * @throws ConfigurationError
 */
export async function listKeys({ retry }: { retry?: true }, environment?: Settings): Promise<Answer> {
  const { envFile, settings } = readSettings(environment);
  const keyModule = moduleOf(settings);
  if (retry) {
    if (keyModule === undefined)
      throw wrong('PKCS11_MODULE', 'is not set: there is no PIN to try again', 'Run it without --retry.');
    rmSync(keyModule.refusedPinFile, { force: true });
  }
  const wallet = walletKeyOf(settings);
  const issuer = issuerKeyOf(settings, pathsOf(envFile, settings).didDocumentPath);
  const { key, next } = signingKeysOf(settings) ?? {};
  const keys = [
    ...(wallet ? [await walletEntry(wallet)] : []),
    ...(issuer ? [await issuerEntry(issuer)] : []),
    ...(key ? [localEntry('webhooks', 'SIGNING_PRIVATE_KEY', key.id)] : []),
    ...(next ? [localEntry('webhooks, next', 'SIGNING_PRIVATE_KEY_NEXT', next.key.id)] : []),
  ];
  return {
    lines:
      keys.length === 0
        ? [`no keys: \`npx tdoc setup${keyModule ? ' --pkcs11' : ''}\` makes them`]
        : keys.flatMap(linesOf),
    json: { keys },
    isYes: keys.every(({ problem }) => problem === null),
  };
}

async function walletEntry(key: WalletKey): Promise<ListedKey> {
  if ('privateKey' in key)
    return localEntry('wallet', 'WALLET_PRIVATE_KEY', openWallet(systemTime, key).address);
  if ('module' in key)
    return moduleEntry('wallet', key, 'secp256k1', key.address, async (point) => {
      await openWallet(systemTime, key).remote?.check();
      return addressOf(point);
    });
  const entry = { ...localEntry('wallet', printableUrl(key.url), key.address), isExtractable: false };
  return checked(entry, async () => openWallet(systemTime, key).remote?.check());
}

async function issuerEntry(key: IssuerKey): Promise<ListedKey> {
  if (!('module' in key)) return localEntry('issuer', 'DID_KEY_PAIRS', `${key.id} ${key.publicKeyMultibase}`);
  return moduleEntry('issuer', key, 'P-256', null, async (point) => {
    const { id } = await verificationMethodOf(key, openModule(systemTime, key.module));
    return `${id} ${p256Multibase(point)}`;
  });
}

/** A key that is in a setting as text: whoever reads it has it. */
function localEntry(key: ListedKey['key'], place: string, publicPart: string): ListedKey {
  return { key, place, public: publicPart, uses: ['sign'], isExtractable: true, problem: null };
}

async function moduleEntry(
  name: ListedKey['key'],
  key: ModuleKey,
  curve: 'secp256k1' | 'P-256',
  known: string | null,
  publicPartOf: (point: Uint8Array) => Promise<string>,
): Promise<ListedKey> {
  const { path, token } = key.module;
  const place = `${path}, token ${token}, label ${key.label}`;
  const entry: ListedKey = { ...localEntry(name, place, ''), public: known, uses: [], isExtractable: null };
  return checked(entry, async () => {
    const { publicKey, isExtractable, uses } = await openModule(
      systemTime,
      key.module,
    )({
      kind: 'describe',
      label: key.label,
      curve,
    });
    Object.assign(entry, { isExtractable, uses });
    entry.public = await publicPartOf(publicKey);
  });
}

async function checked(entry: ListedKey, check: () => Promise<void>): Promise<ListedKey> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    entry.problem = { code: error.code, message: messageOf(error) };
  }
  return entry;
}

function linesOf({ key, place, public: publicPart, uses, isExtractable, problem }: ListedKey): string[] {
  const read = isExtractable ? 'can be read there' : 'cannot be read';
  const may = `may ${uses.join(', ') || 'nothing'}; ${read}`;
  return [
    `${key.padEnd(15)}${publicPart ?? 'unknown'}`,
    `  in           ${place}`,
    `  use          ${isExtractable === null ? 'unknown' : may}`,
    ...(problem ? [`  fault        ${problem.code}: ${problem.message}`] : []),
  ];
}
