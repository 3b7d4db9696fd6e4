import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { orUndefined } from '../base/errors';
import { addressKindOf } from '../base/sink-rules';
import { SHORTEST_MASKED } from '../base/mask-secrets';
import { PROJECT_ROOT } from '../base/project-root';
import { unmaskedSettings } from './secrets';
import type { Settings, Values } from './settings';

/** Absolute paths. `dataDir`: undefined if the state is in PostgreSQL. */
interface ServiceFiles {
  envFile: string;
  serviceConfig: string;
  dataDir: string | undefined;
}

/** Settings that are legal but probably not meant. */
export function warningsOf(settings: Settings, files: ServiceFiles): string[] {
  const named = (['ENV_FILE', 'SERVICE_CONFIG', 'DID_DOCUMENT_PATH'] as const).flatMap((name) => {
    const path = settings[name];
    return path !== undefined && !existsSync(resolve(PROJECT_ROOT, path))
      ? `${name}: there is no file ${path}`
      : [];
  });
  const unmasked = `a secret of less than ${SHORTEST_MASKED} characters is not masked in outputs`;
  const short = unmaskedSettings(settings).map((name) => `${name}: ${unmasked}. Use a longer one.`);
  const ignored = Object.keys(settings).filter((name) => /^https?_proxy$/i.test(name));
  const proxies = ignored.map((name) => `${name}: it is not used. Nodes and sinks are reached directly.`);
  return [...named, ...short, ...proxies, ...exposedFiles(files)];
}

const OTHER_FORMS: Record<string, string> = {
  WALLET_PRIVATE_KEY: 'WALLET_SIGNER_URL or WALLET_PKCS11_KEY',
  DID_KEY_PAIRS: 'DID_PKCS11_KEY',
};

/** Says which settings do instead of missing ones. Empty, or a space and sentences. */
export function otherFormsOf(missing: readonly string[]): string {
  return missing
    .flatMap((name) => (name in OTHER_FORMS ? [` ${OTHER_FORMS[name]} does instead of ${name}.`] : []))
    .join('');
}

/**
 * Warns if documents can be issued without an API key, by everybody who reaches the API and by every web
 * page, because the API accepts every origin. The line is to be logged at start. Undefined if a key is
 * required.
 *
 * @param url the URL at which the service listens.
 */
export function openIssuingWarning(
  { apiKey, host, tunnelAuthtoken }: Pick<Values, 'apiKey' | 'host' | 'tunnelAuthtoken'>,
  url: string,
): { level: 'warn' | 'error'; message: string } | undefined {
  if (apiKey !== undefined) return undefined;
  const message = (who: string, pages = '', remedy = 'Set API_KEY.'): string =>
    `API_KEY is not set${who} can issue documents at the wallet's expense${pages}. ${remedy}`;
  if (tunnelAuthtoken !== undefined)
    return { level: 'error', message: message(', and TUNNEL_AUTHTOKEN is: anybody who reaches DOMAIN') };
  const pages = ', and so can any web page in a browser';
  if (host.toLowerCase() !== 'localhost' && addressKindOf(host) !== 'loopback') {
    const who = `, and HOST is ${host}: anybody who reaches this machine`;
    const remedy = 'Set API_KEY, or HOST=127.0.0.1.';
    return { level: 'error', message: message(who, `${pages} that does`, remedy) };
  }
  return { level: 'warn', message: message(`: anybody who reaches ${url}`, `${pages} on this machine`) };
}

/**
 * Warnings for the env file, the configuration file and the folder of the database, if others than their
 * owner may read or change them. A file or folder that does not exist yet will be made with the right mode.
 */
function exposedFiles({ envFile, serviceConfig, dataDir }: ServiceFiles): string[] {
  const files = [
    ['ENV_FILE', envFile, 'holds secrets'],
    ['SERVICE_CONFIG', serviceConfig, 'may hold secrets'],
  ].flatMap(([setting, path = '', holds]) => {
    const mode = exposedMode(path, 'isFile');
    const which = `${path} (mode ${mode}), which ${holds}`;
    return mode === undefined ? [] : `${setting}: others can read ${which}: run \`chmod 600 ${path}\``;
  });
  const mode = dataDir === undefined ? undefined : exposedMode(dataDir, 'isDirectory');
  if (mode === undefined) return files;
  return [...files, `DATA_DIR: others can look into ${dataDir} (mode ${mode}): run \`chmod 700 ${dataDir}\``];
}

/**
 * The mode, if it lets others in. Undefined if the path cannot be read: the code that opens it reports the
 * error.
 */
function exposedMode(path: string, kind: 'isFile' | 'isDirectory'): string | undefined {
  // File modes on Windows do not tell who may read a file.
  if (process.platform === 'win32') return undefined;
  const stats = orUndefined(() => statSync(path));
  return stats?.[kind]() && (stats.mode & 0o077) !== 0 ? (stats.mode & 0o777).toString(8) : undefined;
}
