import { createPublicKey, randomBytes, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { keyIdOf, nextKeyIdOf, parseDidKeyPair, type DidKeyPair } from '../../service/base/did-key-pair';
import { ConfigurationError } from '../../service/base/errors';
import { parseSigningKey } from '../../service/base/signing-keys';
import { readSettings } from '../../service/config/config';
import { readConfigFile } from '../../service/config/followed-registries';
import { wrong } from '../../service/config/setting-types';
import { walletKeyOf } from '../../service/config/key-settings';
import { settingOf, type Settings } from '../../service/config/settings';
import { tenantFilesOf, tenantOf, pathsOf } from '../../service/config/tenant';
import type { Answer, Say } from '../answer';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, writeFileAtomically } from '../files/write-file';
import { didDocumentOf, issuerOf, keysIn, makeIssuerKey, NO_EARLIER_KEY } from './did-key';
import { keepModuleKey, makeModuleKeys, moduleIssuerOf } from './module-keys';

/**
 * Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, and lists the
 * settings that the service still needs to issue and deliver.
 *
 * @throws the errors of readConfigFile, makeDidKey and makeSigningKey.
 */
export async function setUp({ pkcs11 }: { pkcs11?: true }, say: Say): Promise<Answer> {
  const { envFile, settings } = readSettings();
  // A damaged file is reported before anything is made.
  const { webhook } = readConfigFile(pathsOf(envFile, settings).serviceConfig);
  const didKey = pkcs11 ? { json: await makeModuleKeys(say) } : await makeDidKey({});
  if ('lines' in didKey) didKey.lines.forEach(say);
  const signingKey = await makeSigningKey({});
  signingKey.lines.forEach(say);
  const missing = missingSettings(readSettings().settings, webhook?.url);
  return {
    lines: [
      missing.length === 0 ? 'Nothing is missing. Next: `npx tdoc service`.' : `Missing in ${envFile}:`,
      ...missing.map(({ setting, remedy }) => `  ${setting}: ${remedy}`),
    ],
    json: { didKey: didKey.json, signingKey: signingKey.json, missing },
    isYes: true,
  };
}

/** The missing settings, each with its remedy. `webhookUrl`: that of service.config.json. */
function missingSettings(
  settings: Settings,
  webhookUrl: string | undefined,
): { setting: string; remedy: string }[] {
  const network = settingOf(settings, 'NET');
  settingOf(settings, 'DOMAIN');
  const { rpcKey } = network;
  const remedies = {
    ...(rpcKey && {
      [rpcKey]:
        settings[rpcKey] === undefined &&
        settings.RPC_URL === undefined &&
        `set it to reach ${network.name}, or set RPC_URL to a node of your own`,
    }),
    WALLET_PRIVATE_KEY:
      walletKeyOf(settings) === undefined &&
      `set it to the key of a wallet that can pay on ${network.name}, or set WALLET_SIGNER_URL ` +
        'or WALLET_PKCS11_KEY',
    TOKEN_REGISTRY_ADDRESS:
      settings.TOKEN_REGISTRY_ADDRESS === undefined &&
      '`npx hardhat deploy` deploys a registry and writes it',
    WEBHOOK_URL:
      settings.WEBHOOK_URL === undefined &&
      webhookUrl === undefined &&
      'set it to the URL that receives events; without it they are stored but not delivered',
  };
  return Object.entries(remedies).flatMap(([setting, remedy]) => (remedy ? [{ setting, remedy }] : []));
}

/**
 * Makes the issuer's key pair and its DID document. An existing key is never replaced without `force`:
 * credentials that it signed would no longer verify. A missing DID document is rebuilt from its key.
 *
 * @param environment instead of the process's.
 * A key in a module is found there, and never made here.
 *
 * @throws ConfigurationError if DOMAIN is missing, or if the existing key and document do not match;
 *   SignerError.
 */
export async function makeDidKey({ force }: { force?: true }, environment?: Settings): Promise<Answer> {
  const { envFile, settings } = readSettings(environment);
  const did = issuerOf(envFile, settings);
  const moduleKey = moduleIssuerOf(envFile, settings);
  if (moduleKey !== undefined && force) {
    const remedy = 'Make the next key with `npx tdoc did --rotate`.';
    const message = `DID_PKCS11_KEY names a key in the module, which --force does not replace. ${remedy}`;
    throw new ConfigurationError('KEY_EXISTS', message, { remedy });
  }
  if (moduleKey !== undefined) return keepModuleKey(envFile, moduleKey);
  const setting = 'DID_KEY_PAIRS';
  const publicFile = pathsOf(envFile, settings).didDocumentPath;
  const before = parseDidKeyPair(settings[setting] ?? '');
  // Not even `force` replaces a key that is cut: the user has it, and may not know that it is not read.
  if ('remedy' in before) throw wrong(setting, before.problem, before.remedy);
  const key: PublishedKey<DidKeyPair> = {
    setting,
    publicFile,
    create: () => makeIssuerKey(nextKeyIdOf(did, [textOf(publicFile), settings[setting] ?? '']), did).value,
    read: (text) => {
      const parsed = parseDidKeyPair(text);
      if ('problem' in parsed)
        throw keyExists(`${setting} ${parsed.problem}. Restore the one you had`, '--rotate');
      const { controller } = parsed.keyPair;
      if (controller === did) return parsed.keyPair;
      throw keyExists(
        `${setting} is the key of ${controller}, but DOMAIN makes the issuer ${did}. Set DOMAIN back`,
      );
    },
    nameOf: ({ id }) => `The key ${id}`,
    publish: (keyPair) => `${JSON.stringify(didDocumentOf(keyPair), null, 2)}\n`,
    isPublishedIn: publishesKey,
    rebuilt: ({ id }) => (id === keyIdOf(did, 1) ? [] : [NO_EARLIER_KEY]),
    made: [
      `issuer         ${did}`,
      `key pair       ${setting} in ${envFile} (secret)`,
      `DID document   ${publicFile} (public; the service serves it at /.well-known/did.json)`,
    ],
    renewal: '--rotate',
    replaced: `${publicFile} has the new key only: credentials signed with an earlier one no longer verify.`,
  };
  return makeKey(key, force, environment);
}

/** The content of a file. Empty if it cannot be read. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Whether a did.json file publishes the key. */
function publishesKey(text: string, { id, controller, publicKeyMultibase }: DidKeyPair): boolean {
  try {
    const published = keysIn(JSON.parse(text), controller).find((key) => key.id === id);
    return published?.publicKeyMultibase === publicKeyMultibase;
  } catch {
    return false;
  }
}

const SEED_BYTES = 32;

/**
 * Makes the Ed25519 key that signs webhooks and the PEM file of its public half for subscribers. As in
 * `makeDidKey`, an existing key is never replaced without `force`, and a missing PEM file is rebuilt from its
 * key.
 *
 * @param options `publicKeyFile`: where the PEM file goes; relative to the working directory.
 * @param environment instead of the process's.
 */
export async function makeSigningKey(
  { force, publicKeyFile }: { force?: true; publicKeyFile?: string | undefined },
  environment?: Settings,
): Promise<Answer> {
  const { envFile } = readSettings(environment);
  const setting = 'SIGNING_PRIVATE_KEY';
  const publicFile = publicKeyFile
    ? resolve(publicKeyFile)
    : tenantFilesOf(tenantOf(envFile)).webhookPublicKey;
  const key: PublishedKey<KeyObject> = {
    setting,
    publicFile,
    create: () => randomBytes(SEED_BYTES).toString('base64'),
    read: (text) => {
      const parsed = parseSigningKey(text);
      if (parsed !== undefined) return parsed;
      throw keyExists(`${setting} is not an Ed25519 private key. Restore the one you had`);
    },
    nameOf: () => 'A webhook signing key',
    publish: publicKeyPem,
    isPublishedIn: (text, privateKey) => text.trim() === publicKeyPem(privateKey).trim(),
    rebuilt: () => [],
    made: [
      `private key    ${setting} in ${envFile} (secret)`,
      `public key     ${publicFile} (give it to the subscribers)`,
    ],
    renewal: '--force',
    replaced: 'The previous key was replaced: restart the service, and give subscribers the new public key.',
  };
  return makeKey(key, force, environment);
}

function publicKeyPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

/**
 * A private key in a setting, and the file that publishes its public half.
 *
 * - `create`: makes a value of the setting.
 * - `read`: reads one; throws KEY_EXISTS if it cannot be used.
 * - `nameOf`: begins a sentence about the key.
 * - `publish`: the content of the file.
 * - `rebuilt`: lines about a file that was missing.
 * - `renewal`: the option that makes another key.
 * - `made`, `replaced`: lines about a new key, and about the loss of another.
 */
interface PublishedKey<Key> {
  setting: string;
  publicFile: string;
  create: () => string;
  read: (value: string) => Key;
  nameOf: (key: Key) => string;
  publish: (key: Key) => string;
  isPublishedIn: (content: string, key: Key) => boolean;
  rebuilt: (key: Key) => string[];
  renewal: '--rotate' | '--force';
  made: readonly string[];
  replaced: string;
}

/**
 * Makes a key, or keeps the one that is there and rebuilds a missing public file. The JSON of the answer
 * (docs/cli.md) says whether the key was there, was made, or replaced another one, and whether this run wrote
 * the file.
 */
async function makeKey<Key>(
  { setting, publicFile, ...key }: PublishedKey<Key>,
  force: true | undefined,
  environment: Settings | undefined,
): Promise<Answer> {
  const { envFile, settings } = readSettings(environment);
  const text = settings[setting];
  const names = { setting, envFile, publicFile };
  if (!force && text !== undefined) {
    const found = key.read(text);
    const isMissing = !existsSync(publicFile);
    if (isMissing) writeFileAtomically(publicFile, key.publish(found), PUBLIC_MODE);
    else if (!key.isPublishedIn(readFileSync(publicFile, 'utf8'), found))
      throw keyExists(
        `${publicFile} does not publish the key in ${setting}. Restore the file, or delete it to rebuild it`,
      );
    const kept = `${key.nameOf(found)} is already in ${setting}`;
    const line = isMissing
      ? `${kept}; ${publicFile} was missing and was rebuilt from it.`
      : `${kept}, and its public half in ${publicFile}: nothing was written. ${key.renewal} makes a new key.`;
    return {
      lines: [line, ...(isMissing ? key.rebuilt(found) : [])],
      json: { key: 'kept', ...names, isPublicFileWritten: isMissing, warning: null },
      isYes: true,
    };
  }
  if (!force && existsSync(publicFile))
    throw keyExists(
      `${publicFile} is there, but its private key is not in ${setting}. Restore the key`,
      key.renewal,
    );
  const value = key.create();
  // The private key comes first: nothing can be signed for a public key that is published without it.
  refuseUnwritable(publicFile);
  await setEnvValue(envFile, setting, value);
  writeFileAtomically(publicFile, key.publish(key.read(value)), PUBLIC_MODE);
  const warning = shadowWarning(setting, value, environment);
  const isReplaced = text !== undefined;
  return {
    lines: [...key.made, ...(warning ? [warning] : []), ...(isReplaced ? [key.replaced] : [])],
    json: {
      key: isReplaced ? 'replaced' : 'made',
      ...names,
      isPublicFileWritten: true,
      warning: warning ?? null,
    },
    isYes: true,
  };
}

/**
 * The error for an existing key that only the user may decide to replace. `problem` ends with the way to keep
 * the key, without a full stop.
 */
function keyExists(problem: string, option: '--rotate' | '--force' = '--force'): ConfigurationError {
  return new ConfigurationError('KEY_EXISTS', `${problem}, or make a new key with ${option}.`);
}
