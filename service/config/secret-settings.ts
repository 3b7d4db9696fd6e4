import type { ConfigFile } from './config-file';
import { percentDecoded, SECRET_NAME, secretPartsOf, SHORTEST_MASKED } from '../base/mask-secrets';
import { isNoGasStation, type Settings } from './settings';

/** Settings that are secret as a whole. */
const SECRET_SETTINGS = [
  'WALLET_PRIVATE_KEY',
  'SIGNING_PRIVATE_KEY',
  'DID_KEY_PAIRS',
  'API_KEY',
  'TUNNEL_AUTHTOKEN',
  'ETHERSCAN_API_KEY',
  'PROVIDER_API_KEY',
  'NETWORK_A_API_KEY',
  'NETWORK_A_TESTNET_API_KEY',
];

/** Settings whose URLs may hold a key. */
const URL_SETTINGS = ['RPC_URL', 'GAS_STATION_URL', 'WEBHOOK_URL'];

/**
 * Values that must never be printed. The settings may be invalid: error messages must not contain secrets
 * either.
 *
 * @param file service.config.json; empty if it cannot be read.
 */
export function secretsOf(settings: Settings, file: ConfigFile = {}): string[] {
  const values = SECRET_SETTINGS.flatMap((name) => settings[name] ?? []);
  const urls = URL_SETTINGS.flatMap((name) => settings[name] ?? []).filter((url) => !isNoGasStation(url));
  const registries = file.registries ?? [];
  const webhooks = [file, ...registries].flatMap(({ webhook }) => webhook ?? []);
  const fileUrls = [...registries.map(({ rpcUrl }) => rpcUrl), ...webhooks.map(({ url }) => url)];
  return [
    ...values,
    ...[...urls, ...fileUrls.flatMap((url) => url ?? [])].flatMap(secretPartsOf),
    ...databaseSecrets(settings.DATABASE_URL),
    ...webhooks.flatMap(({ headers = {} }) => headerSecrets(headers)),
    ...didSecrets(settings.DID_KEY_PAIRS),
    ...linesOf(settings.SIGNING_PRIVATE_KEY),
  ];
}

/** Names of settings whose secret, or whose URL's password, is too short to be masked. */
export function unmaskedSettings(settings: Settings): string[] {
  const passwords = [...URL_SETTINGS, 'DATABASE_URL'].map(
    (name) => [name, passwordOf(settings[name])] as const,
  );
  const whole = SECRET_SETTINGS.map((name) => [name, settings[name] ?? ''] as const);
  return [...whole, ...passwords].flatMap(([name, secret]) =>
    secret.length > 0 && secret.length < SHORTEST_MASKED ? name : [],
  );
}

function passwordOf(url = ''): string {
  return URL.canParse(url) ? percentDecoded(new URL(url).password) : '';
}

/** The secret key, even of a damaged key pair. The public key is no secret. */
function didSecrets(text = ''): string[] {
  const named = [...text.matchAll(/secretKeyMultibase\W+(\w+)/g)].map(([, value = '']) => value);
  return [...named, ...(text.match(/z42[1-9A-HJ-NP-Za-km-z]+/g) ?? [])];
}

/** The lines of a PEM: a program may print it line by line, or only one line of it. */
function linesOf(pem = ''): string[] {
  return pem.split(/\\n|\s+/).filter((line) => line.length >= 16);
}

/** The password only: the user and the database name are ordinary words. */
function databaseSecrets(url: string | undefined): string[] {
  if (url === undefined) return [];
  if (!URL.canParse(url)) return secretPartsOf(url);
  const { password, searchParams } = new URL(url);
  return [url, password, percentDecoded(password), searchParams.get('password') ?? ''].filter(Boolean);
}

/** For "Bearer KEY", the key on its own is a secret too. */
function headerSecrets(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    SECRET_NAME.test(name) ? [value, value.split(' ').at(-1) ?? ''] : [],
  );
}
