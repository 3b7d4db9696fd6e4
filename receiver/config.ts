import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { fetchedKeys } from './fetched-keys';
import { onlyKey, type PublicKeys } from './public-keys';

/** A setting is missing or wrong. The message names it and the remedy. */
export class SettingError extends Error {}

/** The receiver's settings, read and checked. */
export interface ReceiverConfig {
  host: string;
  port: number;
  publicKeys: PublicKeys;
  eventsFile: string;
}

/** A setting by its name, or the fallback. */
type Setting = (name: string, fallback: string) => string;

const JWKS_SETTING = 'RECEIVER_JWKS_URL';
const KEY_SETTING = 'WEBHOOK_PUBLIC_KEY_FILE';
const KEY_REMEDY =
  'Run `npx tdoc signing-key` where the service runs, and copy the webhook-public-key.pem that it writes.';

const DEFAULT_ENV_FILE = '.env';

/**
 * Reads the environment, and the env file for settings that are not in it; no other file of this folder does.
 * Paths are relative to the working directory.
 *
 * @param given settings that win over the environment.
 * @throws SettingError
 */
export function readReceiverConfig(
  given: NodeJS.Dict<string> = {},
  environment: NodeJS.ProcessEnv = process.env,
): ReceiverConfig {
  const settings = { ...readEnvFile(environment.ENV_FILE?.trim()), ...environment, ...given };
  const setting: Setting = (name, fallback) => settings[name]?.trim() || fallback;
  return {
    host: setting('RECEIVER_HOST', '127.0.0.1'),
    port: readPort(setting('RECEIVER_PORT', '4000')),
    publicKeys: readPublicKeys(setting),
    eventsFile: setting('RECEIVER_EVENTS_FILE', '.receiver/received-events.jsonl'),
  };
}

/** ENV_FILE, or `.env` if it exists. Other lines of the file, such as the service's secrets, are not kept. */
function readEnvFile(named: string | undefined): NodeJS.Dict<string> {
  const path = named || DEFAULT_ENV_FILE;
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (cause) {
    const isAbsent = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    if (isAbsent && !named) return {};
    const remedy = 'Set ENV_FILE to a file that can be read, or to /dev/null for none.';
    throw new SettingError(`ENV_FILE: the file ${path} cannot be read. ${remedy}`, { cause });
  }
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65_535) return port;
  throw new SettingError(`RECEIVER_PORT is "${text}". Set it to a number from 0 (any free port) to 65535.`);
}

function readPublicKeys(setting: Setting): PublicKeys {
  const url = setting(JWKS_SETTING, '');
  if (url === '') return onlyKey(readPublicKey(setting(KEY_SETTING, 'webhook-public-key.pem')));
  if (setting(KEY_SETTING, '') !== '')
    throw new SettingError(`${JWKS_SETTING} and ${KEY_SETTING} are both set. Unset one of them.`);
  if (!isSafeUrl(url)) {
    const problem = 'is not an https URL without user and password (http is accepted for this machine only)';
    const remedy = 'Set it to the address of the keys: https://trade.example.com/.well-known/jwks.json.';
    throw new SettingError(`${JWKS_SETTING} ${problem}. ${remedy}`);
  }
  return fetchedKeys(url);
}

/** Over plain http, anybody on the way could replace the keys. */
function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username + password !== '') return false;
  const isThisMachine = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isThisMachine);
}

function readPublicKey(path: string): KeyObject {
  const pem = readKeyFile(path);
  // Node.js would derive the public key from it. But a subscriber that holds the private key can forge
  // events.
  if (pem.includes('PRIVATE KEY'))
    throw keyError(path, 'holds a private key, which must stay with the service');
  const key = parsePublicKey(pem);
  if (key?.asymmetricKeyType !== 'ed25519') throw keyError(path, 'is not an Ed25519 public key in PEM form');
  return key;
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw keyError(path, 'cannot be read', cause);
  }
}

function parsePublicKey(pem: string): KeyObject | undefined {
  try {
    return createPublicKey(pem);
  } catch {
    return undefined;
  }
}

function keyError(path: string, problem: string, cause?: unknown): SettingError {
  return new SettingError(`${KEY_SETTING}: the file ${path} ${problem}. ${KEY_REMEDY}`, { cause });
}
