import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { KeyObject } from 'node:crypto';
import { parse as parseEnvFile } from 'dotenv';
import type { Network } from './chain/networks';
import type { DidKeyPair } from './did-key-pair';
import { PROJECT_ROOT } from './project-root';
import { secretPartsOf } from './secrets';
import { SETTING_NAMES } from './setting-names';
import {
  contextUrlOf,
  didKeyPairOf,
  domainOf,
  integerOf,
  logLevelOf,
  networkOf,
  rpcUrlOf,
  tokenRegistryAddressOf,
  urlOf,
  walletPrivateKeyOf,
  wrong,
  type Settings,
} from './settings';
import { parseSigningKey } from './signing-key';
import { readConfigFile, type WebhookOptions } from './config-file';

/**
 * Every setting, validated. The document's configuration table and DESIGN section 2 define them; this is the only file that
 * reads the process's environment. Optional fields are undefined when the setting is absent or empty.
 */
export interface Config {
  readonly envFile: string;
  readonly network: Network;
  readonly rpcUrl: string;
  readonly domain: string | undefined;
  readonly walletPrivateKey: string | undefined;
  readonly didKeyPair: DidKeyPair | undefined;
  readonly tokenRegistryAddress: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly development: boolean;
  readonly apiKey: string | undefined;
  readonly didDocumentPath: string;
  readonly billOfLadingContextUrl: string | undefined;
  readonly rendererUrl: string;
  readonly dataDir: string;
  /** Blocks that must be mined on top of an event's block before it is delivered. */
  readonly confirmations: number;
  /** First block to read; undefined: the registry's `genesis()`. */
  readonly startBlock: number | undefined;
  /** Undefined: events are stored and wait. */
  readonly webhook: (WebhookOptions & { url: string; signingKey: KeyObject }) | undefined;
  readonly logLevel: string;
  /** Values that must never be printed. */
  readonly secrets: readonly string[];
  /** Settings that are legal but probably not meant. */
  readonly warnings: readonly string[];
}

const DEFAULT_RENDERER_URL = 'https://generic-templates.tradetrust.io';

/**
 * The settings as text: the real environment wins over ENV_FILE. `environment` is passed in by tests.
 */
export function readSettings(environment: Settings = process.env): {
  envFile: string;
  settings: Settings;
} {
  const envFile = resolve(PROJECT_ROOT, environment.ENV_FILE || '.env');
  const fromFile = existsSync(envFile) ? parseEnvFile(readFileSync(envFile)) : {};
  // An empty variable of the real environment wins too: it unsets what the file has.
  const merged = { ...fromFile, ...environment };
  const present = Object.entries(merged).flatMap(([name, value]) =>
    value?.trim() ? [[name, value.trim()]] : [],
  );
  return { envFile, settings: Object.fromEntries(present) as Settings };
}

/**
 * The environment that a child process needs of ours (PATH, HOME, NODE_V8_COVERAGE, …), without any setting of the service: what
 * starts a child decides its settings alone.
 */
export function inheritedEnvironment(environment: Settings = process.env): Record<string, string> {
  const inherited = Object.entries(environment).filter(([name]) => !SETTING_NAMES.includes(name));
  return Object.fromEntries(inherited.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/**
 * Reads and validates everything. Absent settings that only a request needs stay undefined; settings that are there but
 * wrong are an error now.
 *
 * @throws ConfigurationError naming the setting, what is wrong with it and what would be right; never its value if secret.
 */
export function loadConfig(environment?: Settings): Config {
  const { envFile, settings } = readSettings(environment);
  const file = readConfigFile(resolve(PROJECT_ROOT, settings.SERVICE_CONFIG ?? 'service.config.json'));
  const network = networkOf(settings);
  const domain = domainOf(settings);
  const signingKeyText = settings.SIGNING_PRIVATE_KEY;
  if (settings.DATABASE_URL) {
    throw wrong(
      'DATABASE_URL',
      'is not supported by this version',
      'Unset it: state is kept in SQLite under DATA_DIR.',
    );
  }
  const rpcUrl = rpcUrlOf(network, settings);
  const apiKey = settings.API_KEY;
  return {
    envFile,
    network,
    rpcUrl,
    domain,
    walletPrivateKey: walletPrivateKeyOf(settings),
    didKeyPair: didKeyPairOf(settings, domain),
    tokenRegistryAddress: tokenRegistryAddressOf(settings),
    host: settings.HOST ?? '127.0.0.1',
    port: integerOf(settings, 'PORT', 0, 65535) ?? 3000,
    development: settings.NODE_ENV === 'development',
    apiKey,
    didDocumentPath: resolve(PROJECT_ROOT, settings.DID_DOCUMENT_PATH ?? 'did.json'),
    billOfLadingContextUrl: contextUrlOf(settings, domain),
    rendererUrl: urlOf(settings, 'RENDERER_URL', ['http:', 'https:']) ?? DEFAULT_RENDERER_URL,
    dataDir: resolve(PROJECT_ROOT, settings.DATA_DIR ?? '.data'),
    confirmations: integerOf(settings, 'CONFIRMATIONS', 0, 100_000) ?? network.confirmations,
    startBlock: integerOf(settings, 'START_BLOCK', 0, Number.MAX_SAFE_INTEGER),
    webhook: webhookOf(settings, file.webhook, signingKeyText),
    logLevel: logLevelOf(settings),
    secrets: secretsOf(settings, rpcUrl),
    warnings: warningsOf(settings),
  };
}

function webhookOf(
  settings: Settings,
  fromFile: (WebhookOptions & { url?: string | undefined }) | undefined,
  signingKeyText: string | undefined,
): Config['webhook'] {
  const signingKey = signingKeyText === undefined ? undefined : parseSigningKey(signingKeyText);
  if (signingKeyText !== undefined && signingKey === undefined) {
    const remedy =
      'It is the base64 of a 32-byte seed, or a PKCS#8 PEM; `npx hardhat signing-key` makes one.';
    throw wrong('SIGNING_PRIVATE_KEY', 'is not an Ed25519 private key', remedy);
  }
  const url = urlOf(settings, 'WEBHOOK_URL', ['http:', 'https:']) ?? fromFile?.url;
  if (url === undefined) return undefined;
  if (signingKey === undefined) {
    const remedy = 'Make a key with `npx hardhat signing-key`.';
    throw wrong('SIGNING_PRIVATE_KEY', 'is needed to sign what is sent to the webhook', remedy);
  }
  return { timeoutMs: fromFile?.timeoutMs, retry: fromFile?.retry, url, signingKey };
}

function warningsOf(settings: Settings): string[] {
  const named = ['ENV_FILE', 'SERVICE_CONFIG', 'DID_DOCUMENT_PATH'].flatMap((name) => {
    const path = settings[name];
    return path !== undefined && !existsSync(resolve(PROJECT_ROOT, path))
      ? [`${name}: there is no file ${path}`]
      : [];
  });
  return settings.TUNNEL_AUTHTOKEN
    ? [...named, 'TUNNEL_AUTHTOKEN is set, but this version opens no tunnel']
    : named;
}

function secretsOf(settings: Settings, rpcUrl: string): string[] {
  const names = ['WALLET_PRIVATE_KEY', 'SIGNING_PRIVATE_KEY', 'DID_KEY_PAIRS', 'API_KEY', 'TUNNEL_AUTHTOKEN'];
  const keys = ['PROVIDER_API_KEY', 'NETWORK_A_API_KEY', 'NETWORK_A_TESTNET_API_KEY'];
  const values = [...names, ...keys].flatMap((name) => settings[name] ?? []);
  const secretKey = settings.DID_KEY_PAIRS?.match(/z42[1-9A-HJ-NP-Za-km-z]+/)?.[0] ?? [];
  return [...values, ...secretPartsOf(rpcUrl)].concat(secretKey);
}
