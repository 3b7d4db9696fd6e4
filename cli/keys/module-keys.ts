import { existsSync, readFileSync } from 'node:fs';
import { systemTime } from '../../service/base/time';
import { keyIdOf, keyNumberOf, nextKeyIdOf, p256Multibase } from '../../service/base/did-key-pair';
import { ConfigurationError } from '../../service/base/errors';
import { readSettings } from '../../service/config/config';
import { wrong } from '../../service/config/setting-types';
import {
  issuerKeyOf,
  moduleOf,
  type ModuleIssuerKey,
  type ModuleSettings,
} from '../../service/config/key-settings';
import { settingOf, type Settings } from '../../service/config/settings';
import { tenantOf, pathsOf } from '../../service/config/tenant';
import { openModule } from '../../service/keys/pkcs11';
import { addressOf } from '../../service/keys/transaction-signer';
import type { Answer, Say } from '../answer';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, writeFileAtomically } from '../files/write-file';
import { didDocumentOf, issuerOf, keysIn, type NewIssuerKey, NO_EARLIER_KEY } from './did-key';

/** The keys that `tdoc setup --pkcs11` made or found, as JSON of its answer. */
export interface ModuleKeys {
  module: string;
  token: string;
  /** Null if a remote signer has the wallet's key. */
  wallet: { label: string; address: string } | null;
  issuer: { label: string; publicKeyMultibase: string };
}

/**
 * Makes the wallet's key and the issuer's inside the module, if there are none of their labels, and writes
 * the settings that name them, and did.json. Nothing can read the private keys. Run again, it finds the same
 * keys.
 *
 * @throws ConfigurationError if a setting is missing, a key has another form already, or did.json is of
 *   another key; SignerError.
 */
export async function makeModuleKeys(say: Say, environment?: Settings): Promise<ModuleKeys> {
  const { envFile, settings } = readSettings(environment);
  const did = issuerOf(envFile, settings);
  const keyModule = moduleOf(settings) ?? missingModule(envFile);
  for (const name of ['WALLET_PRIVATE_KEY', 'DID_KEY_PAIRS'] as const)
    if (settings[name] !== undefined) {
      const remedy = `Unset it in ${envFile} first, and keep it elsewhere while it is of use.`;
      throw wrong(name, 'is set: the key is not in the module', remedy);
    }
  const { didDocumentPath } = pathsOf(envFile, settings);
  refuseUnwritable(didDocumentPath);
  const { isDefault, name } = tenantOf(envFile);
  const labelOf = (use: string): string => (isDefault ? use : `${name}-${use}`);
  const write = async (setting: string, value: string): Promise<void> => {
    await setEnvValue(envFile, setting, value);
    const warning = shadowWarning(setting, value, environment);
    if (warning !== undefined) say(warning);
  };
  const { path, token } = keyModule;
  const wallet = await makeWallet(keyModule, settings, { label: labelOf('wallet'), write, say });
  const label = settingOf(settings, 'DID_PKCS11_KEY') ?? labelOf('issuer');
  const { publicKey } = await openModule(systemTime, keyModule)({ kind: 'make', label, curve: 'P-256' });
  const publicKeyMultibase = p256Multibase(publicKey);
  publish({ didDocumentPath, controller: did, label }, publicKeyMultibase);
  await write('DID_PKCS11_KEY', label);
  say(`issuer's key   ${label} in token ${token} (DID_PKCS11_KEY)`);
  say(`issuer         ${did}`);
  say(`DID document   ${didDocumentPath} (public; the service serves it at /.well-known/did.json)`);
  return { module: path, token, wallet, issuer: { label, publicKeyMultibase } };
}

async function makeWallet(
  keyModule: ModuleSettings,
  settings: Settings,
  to: { label: string; write: (setting: string, value: string) => Promise<void>; say: Say },
): Promise<ModuleKeys['wallet']> {
  if (settingOf(settings, 'WALLET_SIGNER_URL') !== undefined) {
    to.say("wallet's key   at WALLET_SIGNER_URL: none is made");
    return null;
  }
  const label = settingOf(settings, 'WALLET_PKCS11_KEY') ?? to.label;
  const { publicKey } = await openModule(systemTime, keyModule)({ kind: 'make', label, curve: 'secp256k1' });
  const address = addressOf(publicKey);
  const before = settingOf(settings, 'WALLET_ADDRESS');
  if (before !== undefined && before !== address) {
    const remedy = `Correct WALLET_PKCS11_KEY, or unset WALLET_ADDRESS: the key's address is ${address}.`;
    throw wrong('WALLET_ADDRESS', `is not the address of the module's key "${label}"`, remedy);
  }
  await to.write('WALLET_ADDRESS', address);
  await to.write('WALLET_PKCS11_KEY', label);
  to.say(`wallet's key   ${label} in token ${keyModule.token} (WALLET_PKCS11_KEY)`);
  to.say(`wallet         ${address} (WALLET_ADDRESS): send it funds`);
  return { label, address };
}

/**
 * The issuer's key in the module, if DID_PKCS11_KEY names one.
 *
 * @throws ConfigurationError if a setting is wrong, or one that belongs to another is missing.
 */
export function moduleIssuerOf(envFile: string, settings: Settings): ModuleIssuerKey | undefined {
  if (settings.DID_PKCS11_KEY === undefined) return undefined;
  const key = issuerKeyOf(settings, pathsOf(envFile, settings).didDocumentPath);
  return key !== undefined && 'module' in key ? key : undefined;
}

/**
 * The public half, in multibase.
 *
 * @throws SignerError; SIGNER_REFUSED if the module has no such key.
 */
export async function publicKeyInModule({ module: keyModule, label }: ModuleIssuerKey): Promise<string> {
  const { publicKey } = await openModule(systemTime, keyModule)({ kind: 'describe', label, curve: 'P-256' });
  return p256Multibase(publicKey);
}

/**
 * Finds the key that DID_PKCS11_KEY names, and rebuilds a missing did.json from it.
 *
 * @throws ConfigurationError KEY_EXISTS; SignerError.
 */
export async function keepModuleKey(envFile: string, key: ModuleIssuerKey): Promise<Answer> {
  const { label, controller, didDocumentPath: publicFile } = key;
  const isRebuilt = publish(key, await publicKeyInModule(key));
  const kept = `The key "${label}" of DID_PKCS11_KEY is in the module`;
  const number = numberIn(label);
  const rebuilt = [
    `${kept}; ${publicFile} was missing and was rebuilt from it, as ${keyIdOf(controller, number)}.`,
    ...(number === 1 ? [] : [NO_EARLIER_KEY]),
  ];
  const lines = isRebuilt
    ? rebuilt
    : [`${kept}, and its public half in ${publicFile}: nothing was written. --rotate makes a new key.`];
  const json = { key: 'kept', setting: 'DID_PKCS11_KEY', envFile, publicFile };
  return { lines, json: { ...json, isPublicFileWritten: isRebuilt, warning: null }, isYes: true };
}

/**
 * Makes the issuer's next key in the module, under a label with its number: `issuer`, then `issuer-2`. A
 * label that the module has already is left alone, whatever made it: nobody knows what its key signed.
 *
 * @param present the verification method of the key that DID_PKCS11_KEY names, if it is known.
 * @param texts everything that may name earlier keys of the issuer.
 * @throws SignerError
 */
export async function makeNextModuleKey(
  { module: keyModule, label, controller }: Omit<ModuleIssuerKey, 'didDocumentPath'>,
  present: string | undefined,
  texts: readonly string[],
): Promise<NewIssuerKey> {
  const ending = `-${keyNumberOf(present ?? '', controller)}`;
  const base = label.endsWith(ending) ? label.slice(0, -ending.length) : label;
  const id = nextKeyIdOf(controller, texts);
  const value = `${base}-${keyNumberOf(id, controller)}`;
  const { isNew, publicKey } = await openModule(
    systemTime,
    keyModule,
  )({
    kind: 'make',
    label: value,
    curve: 'P-256',
  });
  if (!isNew) return makeNextModuleKey({ module: keyModule, label, controller }, present, [...texts, id]);
  const method = { id, type: 'Multikey' as const, controller, publicKeyMultibase: p256Multibase(publicKey) };
  return { method, setting: 'DID_PKCS11_KEY', value };
}

/** The number that a rotation gave to a label. */
function numberIn(label: string): number {
  return Number(/-([1-9]\d{0,8})$/.exec(label)?.[1] ?? '1');
}

/**
 * Published before the settings name it, so that the service signs with no key that nobody can find.
 *
 * @returns whether did.json was missing, and was written.
 */
function publish(
  { didDocumentPath: path, controller, label }: Omit<ModuleIssuerKey, 'module'>,
  publicKeyMultibase: string,
): boolean {
  if (existsSync(path)) {
    if (isPublished(readFileSync(path, 'utf8'), controller, publicKeyMultibase)) return false;
    const remedy =
      'Restore the file, or the key that it publishes, or move the file away to make one of this key.';
    const message = `${path} does not publish the key "${label}" of the module. ${remedy}`;
    throw new ConfigurationError('KEY_EXISTS', message, { remedy });
  }
  const id = keyIdOf(controller, numberIn(label));
  const key = { id, type: 'Multikey', controller, publicKeyMultibase } as const;
  writeFileAtomically(path, `${JSON.stringify(didDocumentOf(key), null, 2)}\n`, PUBLIC_MODE);
  return true;
}

function isPublished(text: string, controller: string, publicKeyMultibase: string): boolean {
  try {
    return keysIn(JSON.parse(text), controller).some((key) => key.publicKeyMultibase === publicKeyMultibase);
  } catch {
    return false;
  }
}

function missingModule(envFile: string): never {
  const remedy =
    'Set it to the path of the library that came with the module, and PKCS11_TOKEN and PKCS11_PIN too.';
  throw wrong('PKCS11_MODULE', `is not set in ${envFile}`, remedy);
}
