import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse as parseEnvFile } from 'dotenv';
import { orUndefined } from '../base/errors';
import { PROJECT_ROOT } from '../base/project-root';
import type { SigningKeys } from '../base/signing-keys';
import type { Confirmations, FeeTerms, Network } from '../chain/networks';
import { type Following, readConfigFile, followingOf } from './followed-registries';
import { type IssuerKey, issuerKeyOf, signingKeysOf, type WalletKey, walletKeyOf } from './key-settings';
import {
  type CamelCase,
  consoleReadKeyOf,
  contextUrlOf,
  type KEY_SETTINGS,
  type RpcUrls,
  feeTermsOf,
  rpcUrlsOf,
  SETTINGS,
  type Settings,
  type Values,
  valuesOf,
  walletLoginOf,
} from './settings';
import { secretsOf } from './secrets';
import { readSettingFile } from './setting-types';
import { pathsOf, type ServicePaths } from './tenant';
import { warningsOf } from './warnings';

/** Values that are read through what follows from them. */
type Fees = 'gasStationUrl' | 'leastPriorityFeeGwei';
type Combined = 'net' | 'nodeEnv' | Fees | keyof ServicePaths | CamelCase<keyof typeof KEY_SETTINGS>;

/**
 * Every setting of the service, validated, and what follows from several of them; this is the only file that
 * reads the process's environment. Fields are undefined when the setting is absent or empty and has no
 * default.
 */
export interface Config extends Omit<Values, Combined>, Following, ServicePaths {
  readonly envFile: string;
  readonly network: Network;
  readonly rpcUrls: RpcUrls;
  readonly fees: FeeTerms;
  /** Mints use the confirmations of the registry's events, so both become final together. */
  readonly mintConfirmations: Confirmations;
  readonly walletKey: WalletKey | undefined;
  readonly issuerKey: IssuerKey | undefined;
  /** Undefined: nothing can be sent to a webhook. */
  readonly signingKeys: SigningKeys | undefined;
  readonly development: boolean;
  /** Values that must never be printed. */
  readonly secrets: readonly string[];
  /** Settings that are legal but probably not meant. */
  readonly warnings: readonly string[];
}

/** The names of the settings without which no document can be issued, where they are not set. */
export function missingForIssuing(
  config: Pick<Config, 'billOfLadingContextUrl' | 'walletKey' | 'issuerKey' | 'tokenRegistryAddress'>,
): string[] {
  const needed = {
    // The URL of the context follows from it, unless that is set itself.
    DOMAIN: config.billOfLadingContextUrl,
    WALLET_PRIVATE_KEY: config.walletKey,
    DID_KEY_PAIRS: config.issuerKey,
    TOKEN_REGISTRY_ADDRESS: config.tokenRegistryAddress,
  };
  return Object.entries(needed).flatMap(([name, value]) => (value ? [] : [name]));
}

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
export function loadConfig(environment?: Settings): Config {
  const { envFile, settings } = readSettings(environment);
  const paths = pathsOf(envFile, settings);
  const file = readConfigFile(paths.serviceConfig);
  const { net: network, nodeEnv, ...values } = valuesOf(settings);
  const following = followingOf(settings, file);
  const dataDir = values.databaseUrl === undefined ? paths.dataDir : undefined;
  return {
    ...values,
    ...paths,
    envFile,
    network,
    rpcUrls: rpcUrlsOf(network, settings),
    fees: feeTermsOf(network, settings),
    walletKey: walletKeyOf(settings),
    issuerKey: issuerKeyOf(settings, paths.didDocumentPath),
    signingKeys: signingKeysOf(settings),
    consoleReadKey: consoleReadKeyOf(settings),
    walletLogin: walletLoginOf(settings),
    billOfLadingContextUrl: contextUrlOf(settings),
    development: nodeEnv === 'development',
    ...following,
    mintConfirmations: following.ownRegistry?.confirmations ?? network.confirmations,
    secrets: secretsOf(settings, file),
    warnings: warningsOf(settings, { ...paths, envFile, dataDir }),
  };
}
