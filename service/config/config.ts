import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse as parseEnvFile } from 'dotenv';
import { orUndefined } from '../base/errors';
import { PROJECT_ROOT } from '../base/project-root';
import { readConfigFile, followingOf } from './followed-registries';
import { issuerKeyOf, signingKeysOf, walletKeyOf } from './key-settings';
import {
  type CamelCase,
  consoleReadKeyOf,
  contextUrlOf,
  gasStationUrlOf,
  type KEY_SETTINGS,
  rpcUrlsOf,
  SETTINGS,
  type Settings,
  valuesOf,
} from './settings';
import { secretsOf } from './secrets';
import { readSettingFile } from './setting-types';
import { pathsOf } from './tenant';
import { warningsOf } from './warnings';

/**
 * Every setting of the service, validated, and what follows from several of them; this is the only file that
 * reads the process's environment. Fields are undefined when the setting is absent or empty and has no
 * default.
 */
export type Config = Readonly<Omit<ReturnType<typeof loadConfig>, Combined>>;

/** Values that are read through what follows from them. */
type Combined = 'net' | 'nodeEnv' | CamelCase<keyof typeof KEY_SETTINGS>;

/** The env file (an absolute path), whether it can be read or not. */
export function envFileOf(environment: Settings = process.env): string {
  return resolve(PROJECT_ROOT, environment.ENV_FILE || '.env');
}

/**
 * The settings as text: the real environment wins over ENV_FILE. `environment` is passed in by tests.
 *
 * @throws ConfigurationError CONFIGURATION_INVALID when the file cannot be read.
 */
export function readSettings(environment: Settings = process.env): { envFile: string; settings: Settings } {
  const envFile = envFileOf(environment);
  const fromFile = existsSync(envFile) ? parseEnvFile(readSettingFile('ENV_FILE', envFile)) : {};
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
  // The commands that need service.config.json report its errors, without quoting it.
  const file = orUndefined(() => readConfigFile(pathsOf(envFile, settings).serviceConfig));
  return secretsOf(settings, file);
}

/**
 * The environment that a child process inherits (PATH, HOME, NODE_V8_COVERAGE, …), without the service's
 * settings: the caller sets these explicitly.
 */
export function inheritedEnvironment(environment: Settings = process.env): Record<string, string> {
  const inherited = Object.entries(environment).filter(([name]) => !Object.hasOwn(SETTINGS, name));
  return Object.fromEntries(inherited.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/**
 * Reads and validates everything. Absent settings that only a request needs stay undefined; settings that are
 * there but wrong are an error now.
 *
 * @throws ConfigurationError naming the setting, what is wrong with it and what would be right; never its
 *   value if secret.
 */
export function loadConfig(environment?: Settings) {
  const { envFile, settings } = readSettings(environment);
  const paths = pathsOf(envFile, settings);
  const file = readConfigFile(paths.serviceConfig);
  const values = valuesOf(settings);
  const { net: network, databaseUrl, nodeEnv } = values;
  return {
    ...values,
    ...paths,
    envFile,
    network,
    rpcUrls: rpcUrlsOf(network, settings),
    /** Undefined: the node is asked for the fees. */
    gasStationUrl: gasStationUrlOf(network, settings),
    walletKey: walletKeyOf(settings),
    issuerKey: issuerKeyOf(settings, paths.didDocumentPath),
    /** Undefined: nothing can be sent to a webhook. */
    signingKeys: signingKeysOf(settings),
    consoleReadKey: consoleReadKeyOf(settings),
    billOfLadingContextUrl: contextUrlOf(settings),
    development: nodeEnv === 'development',
    ...followingOf(settings, file),
    /** Values that must never be printed. */
    secrets: secretsOf(settings, file),
    /** Settings that are legal but probably not meant. */
    warnings: warningsOf(settings, {
      ...paths,
      envFile,
      dataDir: databaseUrl === undefined ? paths.dataDir : undefined,
    }),
  };
}
