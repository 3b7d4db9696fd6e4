import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parse as parseEnvFile } from 'dotenv';
import type { Network } from '../chain/networks';
import type { DatabaseLocation } from '../database/open-database';
import type { DidKeyPair } from '../base/did-key-pair';
import { messageOf } from '../base/errors';
import { exposedFiles } from './exposed-files';
import { PROJECT_ROOT } from '../base/project-root';
import { secretsOf, unmaskedSettings } from './secret-settings';
import { SHORTEST_MASKED } from '../base/mask-secrets';
import { SETTING_NAMES } from './setting-names';
import {
  contextUrlOf,
  didKeyPairOf,
  domainOf,
  gasStationUrlOf,
  integerOf,
  logLevelOf,
  networkOf,
  rpcUrlOf,
  databaseUrlOf,
  tokenRegistryAddressOf,
  urlOf,
  walletPrivateKeyOf,
  wrong,
  type Settings,
} from './settings';
import { readConfigFile, type ConfigFile } from './config-file';
import { followedRegistriesOf, type FollowedRegistry } from './followed-registries';
import { tenantFilesOf, tenantOf } from './tenant';
import { signingKeyOf } from './webhook-settings';

/**
 * Every setting, validated. docs/settings.md lists them, and docs/specification.md 1.5 says which names are
 * given; this is the only file that reads the process's environment. Optional fields are undefined when the
 * setting is absent or empty.
 */
export interface Config extends DatabaseLocation {
  readonly envFile: string;
  readonly network: Network;
  readonly rpcUrl: string;
  /** Undefined: the node is asked for the fees. */
  readonly gasStationUrl: string | undefined;
  readonly domain: string | undefined;
  readonly walletPrivateKey: string | undefined;
  readonly didKeyPair: DidKeyPair | undefined;
  readonly tokenRegistryAddress: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly development: boolean;
  readonly apiKey: string | undefined;
  /** Opens a public tunnel with DOMAIN as its host name; undefined: none. */
  readonly tunnelAuthtoken: string | undefined;
  readonly didDocumentPath: string;
  readonly billOfLadingContextUrl: string | undefined;
  readonly rendererUrl: string;
  /** The registries whose events are read and delivered. */
  readonly registries: readonly FollowedRegistry[];
  /** How many blocks back a reorganisation is followed. */
  readonly finalityDepth: number;
  /** Days after which an issued document is removed from the database; undefined: never. */
  readonly documentRetentionDays: number | undefined;
  /** Days after which events are removed that were delivered; undefined: never. */
  readonly eventRetentionDays: number | undefined;
  /** Threads that sign. */
  readonly signingThreads: number;
  /** How many bodies over 1 MB are worked on at once: each takes up to 0.9 GB. */
  readonly largeBodiesAtOnce: number;
  readonly logLevel: string;
  /** Values that must never be printed. */
  readonly secrets: readonly string[];
  /** Settings that are legal but probably not meant. */
  readonly warnings: readonly string[];
}

/** Deeper than the reorganisations of public networks, apart from major incidents. */
const DEFAULT_FINALITY_DEPTH = 256;

/** A hundred years. */
export const LONGEST_RETENTION_DAYS = 36_500;

/** With two at once, the service stays below 2 GB of memory on any machine. */
const LARGE_BODIES_AT_ONCE = 2;
const MOST_LARGE_BODIES = 1_000;
const MOST_THREADS = 256;

const DEFAULT_RENDERER_URL = 'https://generic-templates.tradetrust.io';

/** The env file (an absolute path), whether it can be read or not. */
export function envFileOf(environment: Settings = process.env): string {
  return resolve(PROJECT_ROOT, environment.ENV_FILE || '.env');
}

/**
 * The settings as text: the real environment wins over ENV_FILE. `environment` is passed in by tests.
 *
 * @throws ConfigurationError CONFIGURATION_INVALID when the file cannot be read.
 */
export function readSettings(environment: Settings = process.env): {
  envFile: string;
  settings: Settings;
} {
  const envFile = envFileOf(environment);
  const fromFile = existsSync(envFile) ? parseEnvFile(bytesOf(envFile)) : {};
  // An empty variable of the real environment wins too: it unsets the one in the file.
  const merged = { ...fromFile, ...environment };
  const present = Object.entries(merged).flatMap(([name, value]) =>
    value?.trim() ? [[name, value.trim()]] : [],
  );
  return { envFile, settings: Object.fromEntries(present) as Settings };
}

/**
 * Values that must never be printed. They are found even if other settings or service.config.json are
 * invalid.
 *
 * @throws ConfigurationError CONFIGURATION_INVALID if ENV_FILE cannot be read.
 */
export function knownSecrets(environment?: Settings): string[] {
  const { envFile, settings } = readSettings(environment);
  return secretsOf(settings, configFileIfAny(serviceConfigPathOf(envFile, settings)));
}

/** Returns an empty file on errors: the commands that need the file report them, without quoting it. */
function configFileIfAny(path: string): ConfigFile {
  try {
    return readConfigFile(path);
  } catch {
    return {};
  }
}

function bytesOf(envFile: string): Buffer {
  try {
    return readFileSync(envFile);
  } catch (cause) {
    throw wrong('ENV_FILE', `${envFile} cannot be read: ${messageOf(cause)}`);
  }
}

/** SERVICE_CONFIG, or the default path of this env file's tenant. */
export function serviceConfigPathOf(envFile: string, settings: Settings): string {
  return resolve(PROJECT_ROOT, settings.SERVICE_CONFIG ?? tenantFilesOf(tenantOf(envFile)).serviceConfig);
}

/** The database location of this env file's service. */
export function databaseLocationOf(envFile: string, settings: Settings): DatabaseLocation {
  const dataDir = resolve(PROJECT_ROOT, settings.DATA_DIR ?? tenantFilesOf(tenantOf(envFile)).dataDir);
  return { dataDir, databaseUrl: databaseUrlOf(settings) };
}

/** DID_DOCUMENT_PATH, or the default path of this env file's tenant. */
export function didDocumentPathOf(envFile: string, settings: Settings): string {
  return resolve(PROJECT_ROOT, settings.DID_DOCUMENT_PATH ?? tenantFilesOf(tenantOf(envFile)).didDocument);
}

/**
 * The environment that a child process inherits (PATH, HOME, NODE_V8_COVERAGE, …), without the service's
 * settings: the caller sets these explicitly.
 */
export function inheritedEnvironment(environment: Settings = process.env): Record<string, string> {
  const inherited = Object.entries(environment).filter(([name]) => !SETTING_NAMES.includes(name));
  return Object.fromEntries(inherited.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/**
 * Reads and validates everything. Absent settings that only a request needs stay undefined; settings that are
 * there but wrong are an error now.
 *
 * @throws ConfigurationError naming the setting, what is wrong with it and what would be right; never its
 *   value if secret.
 */
export function loadConfig(environment?: Settings): Config {
  const { envFile, settings } = readSettings(environment);
  const file = readConfigFile(serviceConfigPathOf(envFile, settings));
  const network = networkOf(settings);
  const domain = domainOf(settings);
  const rpcUrl = rpcUrlOf(network, settings);
  const address = tokenRegistryAddressOf(settings);
  const location = databaseLocationOf(envFile, settings);
  return {
    envFile,
    network,
    rpcUrl,
    gasStationUrl: gasStationUrlOf(network, settings),
    domain,
    walletPrivateKey: walletPrivateKeyOf(settings),
    didKeyPair: didKeyPairOf(settings, domain),
    tokenRegistryAddress: address,
    host: settings.HOST ?? '127.0.0.1',
    port: integerOf(settings, 'PORT', 0, 65535) ?? 3000,
    development: settings.NODE_ENV === 'development',
    apiKey: settings.API_KEY,
    tunnelAuthtoken: settings.TUNNEL_AUTHTOKEN,
    didDocumentPath: didDocumentPathOf(envFile, settings),
    billOfLadingContextUrl: contextUrlOf(settings, domain),
    rendererUrl: urlOf(settings, 'RENDERER_URL', ['http:', 'https:']) ?? DEFAULT_RENDERER_URL,
    ...location,
    registries: followedRegistriesOf(settings, file, { network, rpcUrl, address }, signingKeyOf(settings)),
    finalityDepth: integerOf(settings, 'FINALITY_DEPTH', 1, 100_000) ?? DEFAULT_FINALITY_DEPTH,
    documentRetentionDays: integerOf(settings, 'DOCUMENT_RETENTION_DAYS', 1, LONGEST_RETENTION_DAYS),
    eventRetentionDays: integerOf(settings, 'EVENT_RETENTION_DAYS', 1, LONGEST_RETENTION_DAYS),
    signingThreads: integerOf(settings, 'SIGNING_THREADS', 1, MOST_THREADS) ?? availableParallelism(),
    largeBodiesAtOnce:
      integerOf(settings, 'LARGE_BODIES_AT_ONCE', 1, MOST_LARGE_BODIES) ?? LARGE_BODIES_AT_ONCE,
    logLevel: logLevelOf(settings),
    secrets: secretsOf(settings, file),
    warnings: warningsOf(settings, envFile, location),
  };
}

function warningsOf(settings: Settings, envFile: string, location: DatabaseLocation): string[] {
  const named = ['ENV_FILE', 'SERVICE_CONFIG', 'DID_DOCUMENT_PATH'].flatMap((name) => {
    const path = settings[name];
    return path !== undefined && !existsSync(resolve(PROJECT_ROOT, path))
      ? [`${name}: there is no file ${path}`]
      : [];
  });
  const short = unmaskedSettings(settings).map(
    (name) => `${name}: a secret of less than ${SHORTEST_MASKED} characters is not masked in outputs`,
  );
  const { databaseUrl, dataDir } = location;
  const files = { envFile, configFile: serviceConfigPathOf(envFile, settings) };
  return [...named, ...short, ...exposedFiles(files, databaseUrl === undefined ? dataDir : undefined)];
}
