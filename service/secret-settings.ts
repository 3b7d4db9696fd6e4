import { percentDecoded, secretPartsOf } from './secrets';
import type { Settings } from './settings';

const SECRET_SETTINGS = [
  'WALLET_PRIVATE_KEY',
  'SIGNING_PRIVATE_KEY',
  'DID_KEY_PAIRS',
  'API_KEY',
  'TUNNEL_AUTHTOKEN',
  'PROVIDER_API_KEY',
  'NETWORK_A_API_KEY',
  'NETWORK_A_TESTNET_API_KEY',
];

/** URLs that may hold keys. */
const URL_SETTINGS = ['RPC_URL', 'GAS_STATION_URL', 'WEBHOOK_URL'];

/** What must not be printed of the settings, right or wrong as they are. */
export function secretsOfSettings(settings: Settings): string[] {
  const values = SECRET_SETTINGS.flatMap((name) => settings[name] ?? []);
  const secretKey = settings.DID_KEY_PAIRS?.match(/z42[1-9A-HJ-NP-Za-km-z]+/)?.[0] ?? [];
  const urls = URL_SETTINGS.flatMap((name) => settings[name] ?? []);
  // A URL that is none may still have a key in it; a word ("none") has not.
  const urlParts = urls.flatMap((url) => (URL.canParse(url) ? secretPartsOf(url) : secretText(url)));
  // Its user and its name are words like any other.
  const { DATABASE_URL } = settings;
  const databasePassword = DATABASE_URL === undefined ? [] : [DATABASE_URL, ...passwordsOf(DATABASE_URL)];
  return [...values, ...urlParts, ...databasePassword].concat(secretKey);
}

function secretText(text: string): string[] {
  return /^\w+$/.test(text) ? [] : [text];
}

/** As it is written, and as it is sent. */
function passwordsOf(url: string): string[] {
  if (!URL.canParse(url)) return [];
  const { password, searchParams } = new URL(url);
  return [password, percentDecoded(password), searchParams.get('password') ?? ''].filter(Boolean);
}
