import { Wallet, getAddress, isHexString } from 'ethers';
import { DEFAULT_NETWORK, findNetwork, knownNetworks, type Network } from '../chain/networks';
import { isThisMachine } from '../did/fetch-json';
import { didWebOf, parseDidKeyPair, type DidKeyPair } from '../base/did-key-pair';
import { ConfigurationError } from '../base/errors';
import {
  BILL_OF_LADING_CONTEXT,
  contextFileAt,
  KNOWN_CONTEXTS,
  publishedPath,
} from '../base/published-files';

// Each setting with rules of its own has a function here. It returns undefined if the setting is absent, and
// throws a ConfigurationError that names the setting if it is wrong. The message never contains a value that
// may be secret.

/** The settings as text, by name. */
export type Settings = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** The network that NET names; Amoy when it is absent. */
export function networkOf(settings: Settings): Network {
  const network = findNetwork(settings.NET ?? DEFAULT_NETWORK);
  if (network) return network;
  throw wrong('NET', `${shown(settings.NET)} is not a known network`, `Use one of ${knownNetworks()}.`);
}

/** RPC_URL, or the network's own URL with its provider key filled in. */
export function rpcUrlOf(network: Network, settings: Settings): string {
  const override = urlOf(settings, 'RPC_URL', ['http:', 'https:', 'ws:', 'wss:']);
  if (override !== undefined) return override;
  if (network.rpcKey === undefined) return network.rpcUrl;
  const key = settings[network.rpcKey];
  if (key === undefined) {
    throw wrong(
      network.rpcKey,
      `is needed to reach ${network.name}`,
      'Set it, or set RPC_URL to a node of your own.',
    );
  }
  return network.rpcUrl.replace('{key}', encodeURIComponent(key));
}

/** ETHERSCAN_API_KEY: one key for all of Etherscan's explorers. */
export function etherscanApiKeyOf(settings: Settings): string | undefined {
  const key = settings.ETHERSCAN_API_KEY;
  if (key === undefined || /^[\w-]{16,}$/.test(key)) return key;
  throw wrong(
    'ETHERSCAN_API_KEY',
    'is not a key',
    'It is 34 letters and digits: copy it from https://etherscan.io/apidashboard.',
  );
}

/** The value of GAS_STATION_URL that disables the gas station. It is no URL, so it is not masked. */
export function isNoGasStation(url: string): boolean {
  return url.toLowerCase() === 'none';
}

/**
 * GAS_STATION_URL, or the network's own; undefined where there is none, or it is not to be asked ("none").
 */
export function gasStationUrlOf(network: Network, settings: Settings): string | undefined {
  if (settings.GAS_STATION_URL === undefined) return network.gasStationUrl;
  if (isNoGasStation(settings.GAS_STATION_URL)) return undefined;
  return urlOf(settings, 'GAS_STATION_URL', ['http:', 'https:']);
}

/** WALLET_PRIVATE_KEY with its 0x prefix, or undefined. */
export function walletPrivateKeyOf(settings: Settings): string | undefined {
  const text = settings.WALLET_PRIVATE_KEY;
  if (text === undefined) return undefined;
  const key = text.startsWith('0x') ? text : `0x${text}`;
  if (isHexString(key, 32) && isOnCurve(key)) return key;
  throw wrong(
    'WALLET_PRIVATE_KEY',
    'is not a private key',
    'It is 32 bytes in hexadecimal, with or without 0x.',
  );
}

function isOnCurve(key: string): boolean {
  try {
    return new Wallet(key).address !== '';
  } catch {
    return false;
  }
}

/** DOMAIN: a host, or host:port, and nothing else. */
export function domainOf(settings: Settings): string | undefined {
  const domain = settings.DOMAIN;
  if (domain === undefined) return undefined;
  const port = Number(domain.split(':')[1] ?? '1');
  if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i.test(domain) && port > 0 && port < 65536)
    return domain.toLowerCase();
  throw wrong(
    'DOMAIN',
    `${shown(domain)} is not a host or host:port`,
    'Leave out https:// and any path: trade.example.com',
  );
}

/**
 * DID_KEY_PAIRS. Its key must be of DOMAIN's did:web: a signature with another key cannot be corrected later.
 */
export function didKeyPairOf(settings: Settings, domain: string | undefined): DidKeyPair | undefined {
  if (settings.DID_KEY_PAIRS === undefined) return undefined;
  const parsed = parseDidKeyPair(settings.DID_KEY_PAIRS);
  if ('problem' in parsed) {
    throw wrong(
      'DID_KEY_PAIRS',
      parsed.problem,
      'Make a new pair with `npx tdoc did`, or restore the one you had.',
    );
  }
  const { controller } = parsed.keyPair;
  if (domain !== undefined && controller !== didWebOf(domain)) {
    throw wrong(
      'DID_KEY_PAIRS',
      `is the key of ${controller}, but DOMAIN makes the issuer ${didWebOf(domain)}`,
      'Set DOMAIN back, or make a pair for the new domain with `npx tdoc did --force`.',
    );
  }
  return parsed.keyPair;
}

/** TOKEN_REGISTRY_ADDRESS with its checksum. */
export function tokenRegistryAddressOf(settings: Settings): string | undefined {
  if (settings.TOKEN_REGISTRY_ADDRESS === undefined) return undefined;
  try {
    return getAddress(settings.TOKEN_REGISTRY_ADDRESS);
  } catch {
    const remedy =
      'It is 0x and 40 hexadecimal digits. Without it, `npx hardhat deploy` writes the right one.';
    throw wrong(
      'TOKEN_REGISTRY_ADDRESS',
      `${shown(settings.TOKEN_REGISTRY_ADDRESS)} is not an address`,
      remedy,
    );
  }
}

/** DATABASE_URL: a PostgreSQL database. */
export function databaseUrlOf(settings: Settings): string | undefined {
  return urlOf(settings, 'DATABASE_URL', ['postgres:', 'postgresql:']);
}

/**
 * URL of the Bill of Lading context in the credentials. It must serve the context that credentials are signed
 * under.
 */
export function contextUrlOf(settings: Settings, domain: string | undefined): string | undefined {
  const name = 'BILL_OF_LADING_CONTEXT_URL';
  const url = urlOf(settings, name, ['https:', 'http:']);
  if (url === undefined) return domain && `https://${domain}${publishedPath(BILL_OF_LADING_CONTEXT)}`;
  const { protocol, hostname } = new URL(url);
  if (protocol === 'http:' && !isThisMachine(hostname))
    throw wrong(name, 'is not https', 'Only a context of localhost may be served over http.');
  if (contextFileAt(url) === undefined)
    throw wrong(name, 'names a context whose content is not known here', `Set ${KNOWN_CONTEXTS}.`);
  return url;
}

/** A setting that is a URL of one of these protocols ("https:"). */
export function urlOf(settings: Settings, name: string, protocols: string[]): string | undefined {
  const text = settings[name];
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && protocols.includes(url.protocol)) return text;
  throw wrong(
    name,
    'is not a URL',
    `It starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
  );
}

/** A setting that is a whole number from `least` to `most`. */
export function integerOf(settings: Settings, name: string, least: number, most: number): number | undefined {
  const text = settings[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw wrong(name, `${shown(text)} is not a whole number from ${least} to ${most}`);
}

/** LOG_LEVEL, `info` when absent. */
export function logLevelOf(settings: Settings): string {
  const level = settings.LOG_LEVEL ?? 'info';
  if (LOG_LEVELS.includes(level)) return level;
  throw wrong('LOG_LEVEL', `${shown(level)} is not a level`, `Use one of ${LOG_LEVELS.join(', ')}.`);
}

/** Characters of an address. Keys are longer. */
const LONGEST_SHOWN = 42;

/** A wrong value for a message. A value that may be a key, or a URL with one, is not shown. */
export function shown(value = ''): string {
  const mayBeSecret = value.length > LONGEST_SHOWN || value.includes('@');
  return mayBeSecret ? `(${value.length} characters)` : `"${value}"`;
}

/** The error for a wrong setting: "NAME problem. Remedy". */
export function wrong(name: string, problem: string, remedy?: string): ConfigurationError {
  const message = `${name} ${problem}.${remedy ? ` ${remedy}` : ''}`;
  return new ConfigurationError('CONFIGURATION_INVALID', message, remedy ? { remedy } : {});
}
