import { createPublicKey, randomBytes, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { readSettings } from '../../service/config/config';
import type { Settings } from '../../service/config/settings';
import { parseSigningKey } from '../../service/base/signing-key';
import { tenantFilesOf, tenantOf } from '../../service/config/tenant';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, writeFileAtomically } from '../files/write-file';
import { keyExists } from './key-exists';
import type { MadeKey } from './made-key';

const SETTING = 'SIGNING_PRIVATE_KEY';
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
  options: { force: boolean; publicKeyFile?: string | undefined },
  environment?: Settings,
): Promise<MadeKey> {
  const { envFile, settings } = readSettings(environment);
  const { webhookPublicKey } = tenantFilesOf(tenantOf(envFile));
  const file = options.publicKeyFile ? resolve(options.publicKeyFile) : webhookPublicKey;
  const text = settings[SETTING];
  if (!options.force && text !== undefined) return keepKey(text, envFile, file);
  if (!options.force && existsSync(file)) {
    throw keyExists(`${file} is there, but its private key is not in ${SETTING}. Restore the key`);
  }
  return writeNewKey(envFile, file, { environment, isReplaced: text !== undefined });
}

function keepKey(text: string, envFile: string, file: string): MadeKey {
  const key = parseSigningKey(text);
  if (key === undefined) throw keyExists(`${SETTING} is not an Ed25519 private key. Restore the one you had`);
  const kept = `A webhook signing key is already in ${SETTING}`;
  const json = { key: 'kept', setting: SETTING, envFile, publicFile: file, warning: null } as const;
  if (!existsSync(file)) {
    writePublicKey(key, file);
    const lines = [`${kept}; the file of its public key was missing and was rebuilt from it: ${file}`];
    return { lines, json: { ...json, isPublicFileWritten: true } };
  }
  if (readFileSync(file, 'utf8').trim() !== publicKeyPem(key).trim()) {
    throw keyExists(
      `${file} holds another public key than that of ${SETTING}. Delete the file to rebuild it`,
    );
  }
  const lines = [`${kept}, its public key in ${file}: nothing was written. --force makes a new key.`];
  return { lines, json: { ...json, isPublicFileWritten: false } };
}

async function writeNewKey(
  envFile: string,
  file: string,
  { environment, isReplaced }: { environment: Settings | undefined; isReplaced: boolean },
): Promise<MadeKey> {
  const seed = randomBytes(SEED_BYTES).toString('base64');
  const key = parseSigningKey(seed);
  if (key === undefined) throw new Error('the new seed is not accepted as a key');
  // The private key comes first: a subscriber must never hold a public key without a private key.
  refuseUnwritable(file);
  await setEnvValue(envFile, SETTING, seed);
  writePublicKey(key, file);
  const warning = shadowWarning(SETTING, seed, environment);
  const lines = [
    `private key    ${SETTING} in ${envFile} (secret)`,
    `public key     ${file} (give it to the subscribers)`,
    ...(warning === undefined ? [] : [warning]),
    ...(isReplaced
      ? ['The previous key was replaced: restart the service, and give subscribers the new public key.']
      : []),
  ];
  return {
    lines,
    json: {
      key: isReplaced ? 'replaced' : 'made',
      setting: SETTING,
      envFile,
      publicFile: file,
      isPublicFileWritten: true,
      warning: warning ?? null,
    },
  };
}

function writePublicKey(key: KeyObject, file: string): void {
  writeFileAtomically(file, publicKeyPem(key), PUBLIC_MODE);
}

function publicKeyPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}
