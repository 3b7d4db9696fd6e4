import { join, resolve } from 'node:path';
import { didWebOf, type DidKeyPair } from '../base/did-key-pair';
import { PROJECT_ROOT } from '../base/project-root';
import { signingKeyOf, type SigningKeys } from '../base/signing-keys';
import { wrong } from './setting-types';
import { settingOf, type SettingName, type Settings } from './settings';
import { pathsOf } from './tenant';

/** Where the wallet's key is. Only `service/keys/` opens it. */
export type WalletKey = { readonly privateKey: string } | RemoteKey | ModuleWalletKey;

/** A key that a signer keeps. */
export interface RemoteKey {
  readonly url: string;
  /** With its checksum. */
  readonly address: string;
  /** Sent as `Authorization: Bearer`. */
  readonly token: string | undefined;
  /** Absolute paths of PEM files: the client's certificate, and its key. */
  readonly certificate: { readonly path: string; readonly keyPath: string } | undefined;
}

/** A key in a PKCS #11 module. Plain values, so that they can be passed to a thread. */
export interface ModuleKey {
  readonly module: ModuleSettings;
  readonly label: string;
}

/** The wallet's key in a module. */
export interface ModuleWalletKey extends ModuleKey {
  /** With its checksum. */
  readonly address: string;
}

/** A PKCS #11 module and a token in it. Paths are absolute. */
export interface ModuleSettings {
  readonly path: string;
  readonly token: string;
  /** Undefined if the token wants none, or it is in the file. */
  readonly pin: string | undefined;
  readonly pinFile: string | undefined;
  /** There while the PIN was refused and is not to be tried again. */
  readonly refusedPinFile: string;
}

/** Settings that have a meaning with WALLET_SIGNER_URL only. */
const OF_SIGNER = [
  'WALLET_SIGNER_TOKEN',
  'WALLET_SIGNER_CERTIFICATE',
  'WALLET_SIGNER_CERTIFICATE_KEY',
] as const;

/**
 * The wallet that deploys, mints and administers registries. Undefined if none is set.
 *
 * @throws ConfigurationError if a setting is wrong, one that belongs to another is missing, or there are two
 *   keys.
 */
export function walletKeyOf(settings: Settings): WalletKey | undefined {
  const form = formOf(settings, ['WALLET_PRIVATE_KEY', 'WALLET_SIGNER_URL', 'WALLET_PKCS11_KEY']);
  if (form !== 'WALLET_SIGNER_URL') refuseUnused(settings, OF_SIGNER, 'WALLET_SIGNER_URL');
  const privateKey = settingOf(settings, 'WALLET_PRIVATE_KEY');
  if (form === undefined || privateKey !== undefined) {
    if (settings.WALLET_ADDRESS !== undefined) {
      const problem = 'is set, but neither WALLET_SIGNER_URL nor WALLET_PKCS11_KEY is';
      throw wrong('WALLET_ADDRESS', problem, 'Set one of them, or unset this.');
    }
    return privateKey === undefined ? undefined : { privateKey };
  }
  const address = needed(settings, 'WALLET_ADDRESS', form, 'Set it to the address of the key.');
  const label = settingOf(settings, 'WALLET_PKCS11_KEY');
  if (label !== undefined) return { module: neededModuleOf(settings, form), label, address };
  const url = settingOf(settings, 'WALLET_SIGNER_URL') ?? '';
  const token = settingOf(settings, 'WALLET_SIGNER_TOKEN');
  const { username, password } = new URL(url);
  if (token !== undefined && username + password !== '') {
    const remedy = 'Unset it, or take the user and the password out of the URL.';
    throw wrong('WALLET_SIGNER_TOKEN', 'and the user of WALLET_SIGNER_URL are both set', remedy);
  }
  return { url, address, token, certificate: certificateOf(settings) };
}

/** The setting that says where a key is. */
function formOf<Name extends SettingName>(settings: Settings, names: readonly Name[]): Name | undefined {
  const [form, second] = names.filter((name) => settings[name] !== undefined);
  if (form === undefined || second === undefined) return form;
  throw wrong(form, `and ${second} are both set`, 'Unset one of them: it is one key.');
}

/** A setting that another one needs. */
function needed<Name extends SettingName>(
  settings: Settings,
  name: Name,
  other: SettingName,
  remedy: string,
) {
  const value = settingOf(settings, name);
  if (value === undefined) throw wrong(name, `is needed with ${other}`, remedy);
  return value;
}

function refuseUnused(settings: Settings, names: readonly SettingName[], missing: SettingName): void {
  const unused = names.find((name) => settings[name] !== undefined);
  if (unused !== undefined)
    throw wrong(unused, `is set, but ${missing} is not`, 'Set that too, or unset this.');
}

/**
 * The PKCS #11 module. Undefined if none is set.
 *
 * @throws ConfigurationError if a setting is wrong, or one that belongs to another is missing.
 */
export function moduleOf(settings: Settings): ModuleSettings | undefined {
  const path = settingOf(settings, 'PKCS11_MODULE');
  if (path !== undefined) return moduleAt(path, settings);
  refuseUnused(settings, ['PKCS11_TOKEN', 'PKCS11_PIN', 'PKCS11_PIN_FILE'], 'PKCS11_MODULE');
  return undefined;
}

function moduleAt(path: string, settings: Settings): ModuleSettings {
  const pin = settingOf(settings, 'PKCS11_PIN');
  const pinFile = settingOf(settings, 'PKCS11_PIN_FILE');
  const { dataDir } = pathsOf(resolve(PROJECT_ROOT, settings.ENV_FILE ?? '.env'), settings);
  const token = needed(settings, 'PKCS11_TOKEN', 'PKCS11_MODULE', 'Set it to the label of the token.');
  if (pin !== undefined && pinFile !== undefined)
    throw wrong('PKCS11_PIN', 'and PKCS11_PIN_FILE are both set', 'Unset one of them.');
  return {
    path: resolve(PROJECT_ROOT, path),
    token,
    pin,
    pinFile: pinFile === undefined ? undefined : resolve(PROJECT_ROOT, pinFile),
    refusedPinFile: join(dataDir, 'pin-refused.json'),
  };
}

function neededModuleOf(settings: Settings, name: SettingName): ModuleSettings {
  const remedy = 'Set it to the path of the library that came with the module.';
  return moduleAt(needed(settings, 'PKCS11_MODULE', name, remedy), settings);
}

function certificateOf(settings: Settings): RemoteKey['certificate'] {
  const [one, other] = ['WALLET_SIGNER_CERTIFICATE', 'WALLET_SIGNER_CERTIFICATE_KEY'] as const;
  if (settings[one] === undefined && settings[other] === undefined) return undefined;
  const remedy = 'Set it to the path of a PEM file.';
  return {
    path: resolve(PROJECT_ROOT, needed(settings, one, other, remedy)),
    keyPath: resolve(PROJECT_ROOT, needed(settings, other, one, remedy)),
  };
}

/** Where the issuer's key is: a pair, or a key in a module. Plain values. */
export type IssuerKey = DidKeyPair | ModuleIssuerKey;

/** The issuer's key in a module. Its verification method is the one in did.json that has its public key. */
export interface ModuleIssuerKey extends ModuleKey {
  /** The issuer's DID. */
  readonly controller: string;
  readonly didDocumentPath: string;
}

/**
 * DID_KEY_PAIRS or DID_PKCS11_KEY. A pair must be of DOMAIN's did:web: a signature with another key cannot be
 * corrected later.
 *
 * @param didDocumentPath absolute.
 */
export function issuerKeyOf(settings: Settings, didDocumentPath: string): IssuerKey | undefined {
  formOf(settings, ['DID_KEY_PAIRS', 'DID_PKCS11_KEY']);
  const domain = settingOf(settings, 'DOMAIN');
  const label = settingOf(settings, 'DID_PKCS11_KEY');
  if (label !== undefined) {
    const keyModule = neededModuleOf(settings, 'DID_PKCS11_KEY');
    if (domain === undefined) return undefined;
    return { module: keyModule, label, controller: didWebOf(domain), didDocumentPath };
  }
  const keyPair = settingOf(settings, 'DID_KEY_PAIRS');
  if (keyPair === undefined || domain === undefined || keyPair.controller === didWebOf(domain))
    return keyPair;
  const problem = `is the key of ${keyPair.controller}, but DOMAIN makes the issuer ${didWebOf(domain)}`;
  const remedy = 'Set DOMAIN back, or make a pair for the new domain with `npx tdoc did --force`.';
  throw wrong('DID_KEY_PAIRS', problem, remedy);
}

/**
 * The keys of SIGNING_PRIVATE_KEY and SIGNING_PRIVATE_KEY_NEXT. Undefined if neither is set.
 *
 * @throws ConfigurationError if a setting is wrong, or one that belongs to another is missing.
 */
export function signingKeysOf(settings: Settings): SigningKeys | undefined {
  const [next, switchAt] = ['SIGNING_PRIVATE_KEY_NEXT', 'SIGNING_KEY_SWITCH_AT'] as const;
  const privateKey = settingOf(settings, 'SIGNING_PRIVATE_KEY');
  if (settingOf(settings, next) === undefined && settingOf(settings, switchAt) === undefined)
    return privateKey && { key: signingKeyOf(privateKey), next: undefined };
  const nextRemedy = 'Set it to the key that signs from that time on, or unset SIGNING_KEY_SWITCH_AT.';
  const privateKeyNext = needed(settings, next, switchAt, nextRemedy);
  const fromRemedy = 'Set it to the time in UTC from which the next key signs, such as 2027-01-31T12:00:00Z.';
  const from = needed(settings, switchAt, next, fromRemedy);
  const keyRemedy =
    'Set it to the key that signs until SIGNING_KEY_SWITCH_AT; a first key needs no next one.';
  const key = signingKeyOf(needed(settings, 'SIGNING_PRIVATE_KEY', next, keyRemedy));
  const nextKey = signingKeyOf(privateKeyNext);
  if (nextKey.id !== key.id) return { key, next: { key: nextKey, from } };
  const remedy = 'Set it to another key. If the change is over, unset it and SIGNING_KEY_SWITCH_AT instead.';
  throw wrong(next, 'is the same key as SIGNING_PRIVATE_KEY', remedy);
}
