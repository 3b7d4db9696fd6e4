import { existsSync, readFileSync } from 'node:fs';
import { pathsOf, readSettings } from '../../service/config/config';
import { wrong } from '../../service/config/setting-types';
import { settingOf, type Settings } from '../../service/config/settings';
import {
  didWebOf,
  KEY_FRAGMENT,
  MULTIKEY_CONTEXT_URL,
  parseDidKeyPair,
  type DidKeyPair,
} from '../../service/base/did-key-pair';
import { ConfigurationError } from '../../service/base/errors';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, writeFileAtomically } from '../files/write-file';
import { didDocumentOf, publishedKeyOf } from './did-document';
import { keyExists } from './key-exists';
import type { MadeKey } from './made-key';
import { newSecretKey, publicKeyOf } from './p256-multikey';

const SETTING = 'DID_KEY_PAIRS';

/**
 * Makes the issuer's key pair and its DID document. An existing key is never replaced without `force`:
 * credentials that it signed would no longer verify. A missing DID document is rebuilt from its key.
 *
 * @param environment instead of the process's.
 * @throws ConfigurationError if DOMAIN is missing, or if the existing key and document do not match.
 */
export async function makeDidKey({ force }: { force: boolean }, environment?: Settings): Promise<MadeKey> {
  const { envFile, settings } = readSettings(environment);
  const domain = settingOf(settings, 'DOMAIN');
  if (domain === undefined) {
    const remedy =
      `Set DOMAIN in ${envFile} to the host that will serve /.well-known/did.json, ` +
      'for example trade.example.com.';
    throw new ConfigurationError('NOT_CONFIGURED', 'DOMAIN is not set.', { remedy });
  }
  const did = didWebOf(domain);
  const documentPath = pathsOf(envFile, settings).didDocumentPath;
  const text = settings[SETTING];
  if (text !== undefined) refuseCutKey(text);
  if (!force && text !== undefined) return keepKey(existingKey(text, did), envFile, documentPath);
  if (!force && existsSync(documentPath)) {
    throw keyExists(`${documentPath} is there, but its secret key is not in ${SETTING}. Restore the key`);
  }
  return writeNewKey(did, { envFile, documentPath, environment, isReplaced: text !== undefined });
}

/** Not even `force` replaces it: the user has the key, and may not know that it is not read. */
function refuseCutKey(text: string): void {
  const parsed = parseDidKeyPair(text);
  if ('remedy' in parsed) throw wrong(SETTING, parsed.problem, parsed.remedy);
}

function existingKey(text: string, did: string): DidKeyPair {
  const parsed = parseDidKeyPair(text);
  if ('problem' in parsed) throw keyExists(`${SETTING} ${parsed.problem}. Restore the one you had`);
  const { controller } = parsed.keyPair;
  if (controller === did) return parsed.keyPair;
  throw keyExists(
    `${SETTING} is the key of ${controller}, but DOMAIN makes the issuer ${did}. Set DOMAIN back`,
  );
}

function keepKey(keyPair: DidKeyPair, envFile: string, documentPath: string): MadeKey {
  const kept = `The key ${keyPair.id} is already in ${SETTING}`;
  const json = {
    key: 'kept',
    setting: SETTING,
    envFile,
    publicFile: documentPath,
    warning: null,
  } as const;
  if (!existsSync(documentPath)) {
    writeDocument(keyPair, documentPath);
    const lines = [`${kept}; the DID document was missing and was rebuilt from it: ${documentPath}`];
    return { lines, json: { ...json, isPublicFileWritten: true } };
  }
  if (publishedKeyOf(readFileSync(documentPath, 'utf8')) !== keyPair.publicKeyMultibase) {
    throw keyExists(
      `${documentPath} publishes another key than the one in ${SETTING}. Delete the document to rebuild it`,
    );
  }
  const lines = [`${kept} and published in ${documentPath}: nothing was written. --force makes a new key.`];
  return { lines, json: { ...json, isPublicFileWritten: false } };
}

async function writeNewKey(
  did: string,
  {
    envFile,
    documentPath,
    environment,
    isReplaced,
  }: { envFile: string; documentPath: string; environment: Settings | undefined; isReplaced: boolean },
): Promise<MadeKey> {
  const secretKeyMultibase = newSecretKey();
  const value = JSON.stringify({
    '@context': MULTIKEY_CONTEXT_URL,
    id: `${did}#${KEY_FRAGMENT}`,
    type: 'Multikey',
    controller: did,
    publicKeyMultibase: publicKeyOf(secretKeyMultibase),
    secretKeyMultibase,
  });
  const parsed = parseDidKeyPair(value);
  if ('problem' in parsed) throw new Error(`the new key ${parsed.problem}`);
  // The key comes first: nothing could be signed for a document that is published without its key.
  refuseUnwritable(documentPath);
  await setEnvValue(envFile, SETTING, value);
  writeDocument(parsed.keyPair, documentPath);
  const warning = shadowWarning(SETTING, value, environment);
  const lines = [
    `issuer         ${did}`,
    `key pair       ${SETTING} in ${envFile} (secret)`,
    `DID document   ${documentPath} (public; the service serves it at /.well-known/did.json)`,
    ...(warning === undefined ? [] : [warning]),
    ...(isReplaced ? ['The previous key was replaced: credentials signed with it no longer verify.'] : []),
  ];
  return {
    lines,
    json: {
      key: isReplaced ? 'replaced' : 'made',
      setting: SETTING,
      envFile,
      publicFile: documentPath,
      isPublicFileWritten: true,
      warning: warning ?? null,
    },
  };
}

function writeDocument(keyPair: DidKeyPair, path: string): void {
  writeFileAtomically(path, `${JSON.stringify(didDocumentOf(keyPair), null, 2)}\n`, PUBLIC_MODE);
}
