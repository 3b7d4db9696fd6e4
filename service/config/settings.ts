import { availableParallelism } from 'node:os';
import { domainToASCII } from 'node:url';
import { getAddress } from 'ethers';
import * as z from 'zod';
import { parseDidKeyPair, type DidKeyPair } from '../base/did-key-pair';
import {
  BILL_OF_LADING_CONTEXT,
  contextFileAt,
  KNOWN_CONTEXTS,
  publishedPath,
} from '../base/published-files';
import { parseSigningKey } from '../base/signing-keys';
import { isThisMachine } from '../base/sink-rules';
import {
  MOST_CONFIRMATIONS,
  readConfirmations,
  DEFAULT_NETWORK,
  findNetwork,
  knownNetworks,
  type Network,
} from '../chain/networks';
import {
  accessKey,
  bytes32,
  flag,
  integer,
  nodeUrls,
  parsed,
  privateKeyOf,
  refuse,
  refused,
  secret,
  shown,
  text,
  url,
  wrong,
} from './setting-types';

/** The settings as text, by name. */
export type Settings = Readonly<Record<string, string | undefined>>;

/** The value of GAS_STATION_URL that disables the gas station. It is no URL, so it is not masked. */
export const NO_GAS_STATION = 'none';

/** Chain id of the node that `npx hardhat node` runs by default. */
export const NODE_CHAIN_ID = 31337;

/** A hundred years. */
export const LONGEST_RETENTION_DAYS = 36_500;

/** Bounds of the interval between two requests to a chain. */
export const SHORTEST_POLL_INTERVAL_MS = 50;
export const LONGEST_POLL_INTERVAL_MS = 3_600_000;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** The settings of the keys that sign. They are read through what follows from several of them. */
export const KEY_SETTINGS = {
  WALLET_PRIVATE_KEY: secret(
    'whole',
    parsed(privateKeyOf, 'is not a private key', 'It is 32 bytes in hexadecimal, with or without 0x.'),
  ),
  /** Signs with the wallet's key, instead of WALLET_PRIVATE_KEY. */
  WALLET_SIGNER_URL: secret('URL', url(['http', 'https'])),
  WALLET_ADDRESS: address().optional(),
  WALLET_SIGNER_TOKEN: secret(
    'whole',
    parsed(
      (token) => (/^[\x21-\x7e]+$/.test(token) ? token : undefined),
      'has characters that a header cannot have',
      'A token has printable ASCII only, without spaces.',
    ),
  ),
  WALLET_SIGNER_CERTIFICATE: text.optional(),
  WALLET_SIGNER_CERTIFICATE_KEY: text.optional(),
  DID_KEY_PAIRS: secret('key pair', text.transform(readKeyPair)),
  /** The library of a PKCS #11 module, and the label of one of its tokens. */
  PKCS11_MODULE: text.optional(),
  PKCS11_TOKEN: text.optional(),
  PKCS11_PIN: secret('whole', text),
  PKCS11_PIN_FILE: text.optional(),
  /** Labels of keys in the module, instead of WALLET_PRIVATE_KEY and DID_KEY_PAIRS. */
  WALLET_PKCS11_KEY: text.optional(),
  DID_PKCS11_KEY: text.optional(),
  SIGNING_PRIVATE_KEY: signingKey('; `npx tdoc signing-key` makes one'),
  // That command would replace the current key.
  SIGNING_PRIVATE_KEY_NEXT: signingKey(''),
  /** It becomes epoch milliseconds. */
  SIGNING_KEY_SWITCH_AT: parsed(
    (time) => (z.iso.datetime({ precision: 0 }).safeParse(time).success ? Date.parse(time) : undefined),
    '{value} is not a time in UTC',
    'Write date, time and Z, to the second: 2027-01-31T12:00:00Z.',
  ).optional(),
};

/** The settings that the service reads when it starts. docs/settings.md describes them. */
export const SERVICE_SETTINGS = {
  DOMAIN: text.transform(readDomain).optional(),
  NET: parsed(findNetwork, '{value} is not a known network', `Use one of ${knownNetworks()}.`).prefault(
    DEFAULT_NETWORK,
  ),
  TOKEN_REGISTRY_ADDRESS: address(' Without it, `npx hardhat deploy` writes the right one.').optional(),
  ...KEY_SETTINGS,
  RPC_URL: secret('URLs', nodeUrls),
  GAS_STATION_URL: secret('URL', url(['http', 'https'], NO_GAS_STATION)),
  LEAST_PRIORITY_FEE_GWEI: integer(0, 10_000).optional(),
  PROVIDER_API_KEY: secret('whole', text),
  NETWORK_A_API_KEY: secret('whole', text),
  NETWORK_A_TESTNET_API_KEY: secret('whole', text),
  WEBHOOK_URL: secret('URL', url(['http', 'https'])),
  HOST: text.default('127.0.0.1'),
  PORT: integer(0, 65_535).default(3000),
  API_KEY: secret('whole', accessKey),
  ADMIN_API_KEY: secret('whole', accessKey),
  CONSOLE_READ_KEY: secret('whole', accessKey),
  WALLET_LOGIN: flag.default(false),
  ALLOW_PRIVATE_SINKS: flag.default(false),
  SECRETS_KEY: secret('whole', bytes32),
  SUBSCRIPTION_FAILING_AFTER_MINUTES: integer(1, 525_600).default(60),
  /** Opens a public tunnel with DOMAIN as its host name. */
  TUNNEL_AUTHTOKEN: secret('whole', text),
  DID_DOCUMENT_PATH: text.optional(),
  DATA_DIR: text.optional(),
  DATABASE_URL: secret('database URL', text.transform(readDatabaseUrl)),
  ENV_FILE: text.optional(),
  SERVICE_CONFIG: text.optional(),
  CONFIRMATIONS: parsed(
    readConfirmations,
    `{value} is neither a whole number from 0 to ${MOST_CONFIRMATIONS}, nor finalized or safe`,
  ).optional(),
  START_BLOCK: integer(0, Number.MAX_SAFE_INTEGER).optional(),
  POLL_INTERVAL_MS: integer(SHORTEST_POLL_INTERVAL_MS, LONGEST_POLL_INTERVAL_MS).optional(),
  /** The default is deeper than the reorganisations of public networks, apart from major incidents. */
  FINALITY_DEPTH: integer(1, 100_000).default(256),
  DOCUMENT_RETENTION_DAYS: integer(1, LONGEST_RETENTION_DAYS).optional(),
  EVENT_RETENTION_DAYS: integer(1, LONGEST_RETENTION_DAYS).optional(),
  SIGNING_THREADS: integer(1, 256).default(availableParallelism),
  /** Each takes up to 0.9 GB: with two at once, the service stays below 2 GB on any machine. */
  LARGE_BODIES_AT_ONCE: integer(1, 1_000).default(2),
  BILL_OF_LADING_CONTEXT_URL: url(['https', 'http']).superRefine(checkContextUrl).optional(),
  RENDERER_URL: url(['http', 'https']).default('https://generic-templates.tradetrust.io'),
  LOG_LEVEL: parsed(
    (level) => LOG_LEVELS.find((known) => known === level),
    '{value} is not a level',
    `Use one of ${LOG_LEVELS.join(', ')}.`,
  ).default('info'),
  NODE_ENV: text.optional(),
};

/** Every setting. The service does not read the last ones: commands and the reference receiver do. */
export const SETTINGS = {
  ...SERVICE_SETTINGS,
  /** One key for all of Etherscan's explorers. */
  ETHERSCAN_API_KEY: secret(
    'whole',
    parsed(
      (key) => (/^[\w-]{16,}$/.test(key) ? key : undefined),
      'is not a key',
      'It is 34 letters and digits: copy it from https://etherscan.io/apidashboard.',
    ),
  ),
  LOCAL_CHAIN_ID: parsed(
    (id) => (/^[1-9]\d{0,14}$/.test(id) ? Number(id) : undefined),
    '{value} is not a chain id',
    'Unset it: 31337 is right unless a local node must have another chain id, such as 1337.',
  ).default(NODE_CHAIN_ID),
  RECEIVER_API_KEY: secret('whole', text),
  RECEIVER_EVENTS_FILE: text.optional(),
  RECEIVER_HOST: text.optional(),
  RECEIVER_JWKS_URL: text.optional(),
  RECEIVER_PORT: text.optional(),
  WEBHOOK_PUBLIC_KEY_FILE: text.optional(),
};

/** The name of a setting. */
export type SettingName = keyof typeof SETTINGS;

/** The value of a setting, once its text is validated. */
export type SettingValue<Name extends SettingName> = z.output<(typeof SETTINGS)[Name]>;

/** The values of the service's settings: SIGNING_THREADS is `signingThreads`. */
export type Values = {
  readonly [Name in keyof typeof SERVICE_SETTINGS as CamelCase<Name>]: SettingValue<Name>;
};

export type CamelCase<Name extends string> = Name extends `${infer First}_${infer Others}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Others>>}`
  : Lowercase<Name>;

/** Reads all settings of the service. Throws what settingOf throws. */
export function valuesOf(settings: Settings): Values {
  const names = Object.keys(SERVICE_SETTINGS) as (keyof typeof SERVICE_SETTINGS)[];
  return Object.fromEntries(names.map((name) => [camelCase(name), settingOf(settings, name)])) as Values;
}

function camelCase(name: string): string {
  return name.toLowerCase().replaceAll(/_(.)/g, (_match, letter: string) => letter.toUpperCase());
}

/**
 * Reads one setting.
 *
 * @throws ConfigurationError naming the setting, what is wrong with it and what would be right; never its
 *   value if secret.
 */
export function settingOf<Name extends SettingName>(settings: Settings, name: Name): SettingValue<Name> {
  const { success, data, error } = SETTINGS[name].safeParse(settings[name]);
  if (success) return data as SettingValue<Name>;
  throw refused(name, error);
}

/** URLs of nodes of one chain. */
export type RpcUrls = readonly [string, ...string[]];

/** RPC_URL, or the network's own URL. */
export function rpcUrlsOf(network: Network, settings: Settings): RpcUrls {
  return settingOf(settings, 'RPC_URL') ?? networkUrlsOf(network, settings);
}

/** The network's own URL with its provider key filled in. */
export function networkUrlsOf(network: Network, settings: Settings): RpcUrls {
  if (network.rpcKey === undefined) return [network.rpcUrl];
  const key = settingOf(settings, network.rpcKey);
  if (key !== undefined) return [network.rpcUrl.replace('{key}', encodeURIComponent(key))];
  const remedy = 'Set it, or set RPC_URL to a node of your own.';
  throw wrong(network.rpcKey, `is needed to reach ${network.name}`, remedy);
}

/** GAS_STATION_URL, or the network's own; undefined where the node is asked for the fees. */
export function gasStationUrlOf(network: Network, settings: Settings): string | undefined {
  const url = settingOf(settings, 'GAS_STATION_URL') ?? network.gasStationUrl;
  return url === NO_GAS_STATION ? undefined : url;
}

/** CONSOLE_READ_KEY: it lets its holders look at the console, which exists only with ADMIN_API_KEY. */
export function consoleReadKeyOf(settings: Settings): string | undefined {
  const readKey = settingOf(settings, 'CONSOLE_READ_KEY');
  const adminApiKey = settingOf(settings, 'ADMIN_API_KEY');
  if (readKey === undefined) return undefined;
  if (adminApiKey === undefined)
    throw wrong('CONSOLE_READ_KEY', 'is set, but there is no console', 'Set ADMIN_API_KEY too, or unset it.');
  for (const other of ['ADMIN_API_KEY', 'API_KEY'] as const)
    if (readKey === settingOf(settings, other))
      throw wrong('CONSOLE_READ_KEY', `is the same as ${other}`, 'Choose another: it must change nothing.');
  return readKey;
}

/** WALLET_LOGIN: wallets sign for DOMAIN, and keys exist only with ADMIN_API_KEY. */
export function walletLoginOf(settings: Settings): boolean {
  const isOn = settingOf(settings, 'WALLET_LOGIN');
  for (const needed of ['DOMAIN', 'ADMIN_API_KEY'] as const)
    if (isOn && settingOf(settings, needed) === undefined)
      throw wrong('WALLET_LOGIN', `is true, but there is no ${needed}`, 'Set it too, or unset WALLET_LOGIN.');
  return isOn;
}

/** URL of the Bill of Lading context in the credentials: that of the service at DOMAIN, unless it is set. */
export function contextUrlOf(settings: Settings): string | undefined {
  const domain = settingOf(settings, 'DOMAIN');
  const own = domain && `https://${domain}${publishedPath(BILL_OF_LADING_CONTEXT)}`;
  return settingOf(settings, 'BILL_OF_LADING_CONTEXT_URL') ?? own;
}

/** A host or host:port in ASCII, which DIDs and certificates have. */
function readDomain(given: string, context: z.RefinementCtx): string {
  if (isDomain(given)) return given.toLowerCase();
  const ascii = given.replace(/^[^:]*/, (host) => domainToASCII(host));
  const remedy = isDomain(ascii) ? `Write ${ascii}` : 'Leave out https:// and any path: trade.example.com';
  return refuse(context, `${shown(given)} is not a host or host:port`, remedy);
}

function isDomain(host: string): boolean {
  const port = Number(host.split(':')[1] ?? '1');
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i.test(host) && port > 0 && port < 65536;
}

/** The URL of pg, which takes a socket: `user@/name?host=/folder`. A URL of Node.js needs a host there. */
function readDatabaseUrl(given: string, context: z.RefinementCtx): string {
  const url = given.replace('@/', '@localhost/');
  const [, place, rest = ''] = /^postgres(?:ql)?:\/\/([^/?#]*)(.*)/i.exec(url) ?? [];
  if (place === undefined)
    return refuse(context, 'is not a URL', 'It starts with postgres:// or postgresql://');
  const isCut = /#|^[^?]*@/.test(rest) || (/:\d+$/.test(place) && /^\?.*@/.test(rest));
  if (!isCut && place.split('@').at(-1)?.includes(','))
    return refuse(context, 'names several hosts', 'Name one: the primary, or a proxy that leads to it.');
  if (!isCut && URL.canParse(url)) return url;
  const remedy = 'In these write # as %23, / as %2F, ? as %3F and @ as %40.';
  return refuse(context, 'has a user, a password or a port that no URL can have', remedy);
}

/** @param hint ends the remedy. */
function address(hint = '') {
  return parsed(getAddress, '{value} is not an address', `It is 0x and 40 hexadecimal digits.${hint}`);
}

/** @param hint ends the remedy. */
function signingKey(hint: string) {
  const remedy = `It is the base64 of a 32-byte seed, or a PKCS#8 PEM${hint}.`;
  return secret('PEM', parsed(parseSigningKey, 'is not an Ed25519 private key', remedy));
}

function readKeyPair(given: string, context: z.RefinementCtx): DidKeyPair {
  const read = parseDidKeyPair(given);
  if ('keyPair' in read) return read.keyPair;
  const remedy = 'Restore the pair you had, or make the next one with `npx tdoc did --rotate`.';
  return refuse(context, read.problem, read.remedy ?? remedy);
}

/** The URL must serve the context that credentials are signed under. */
function checkContextUrl(given: string, context: z.RefinementCtx): void {
  const { protocol, hostname } = new URL(given);
  if (protocol === 'http:' && !isThisMachine(hostname))
    refuse(context, 'is not https', 'Only a context of localhost may be served over http.');
  else if (contextFileAt(given) === undefined)
    refuse(context, 'names a context whose content is not known here', `Set ${KNOWN_CONTEXTS}.`);
}
