import { percentDecoded, SECRET_NAME, secretPartsOf, SHORTEST_MASKED } from '../base/mask-secrets';
import type { ConfigFile } from './followed-registries';
import { listed, SECRECY, type Secrecy } from './setting-types';
import { NO_GAS_STATION, SETTINGS, type Settings } from './settings';

/** The parts of a secret setting that must not be printed, each on its own. */
const PARTS: Record<Secrecy, (text: string) => string[]> = {
  whole: (text) => [text],
  'key pair': (text) => [text, ...secretKeysIn(text)],
  // A program may print it line by line, or only one line of it.
  PEM: (text) => [text, ...text.split(/\\n|\s+/).filter((line) => line.length >= 16)],
  URLs: (text) => [text, ...listed(text)].flatMap(secretPartsOf),
  URL: (text) => (text.toLowerCase() === NO_GAS_STATION ? [] : secretPartsOf(text)),
  'database URL': databaseSecrets,
};

/**
 * Values that must never be printed. The settings may be invalid: error messages must not contain secrets
 * either.
 *
 * @param file service.config.json; empty if it cannot be read.
 */
export function secretsOf(settings: Settings, { webhook, registries = [] }: ConfigFile = {}): string[] {
  const webhooks = [{ webhook }, ...registries].flatMap((one) => one.webhook ?? []);
  const urls = [...registries.flatMap(({ rpcUrl = [] }) => rpcUrl), ...webhooks.map(({ url }) => url)];
  return [
    ...secretTexts(settings).flatMap(({ secrecy, text }) => PARTS[secrecy](text)),
    ...urls.flatMap((url) => (url === undefined ? [] : secretPartsOf(url))),
    ...webhooks.flatMap(({ headers = {} }) => headerSecrets(headers)),
  ];
}

/** Names of settings whose secret, or whose URL's password, is too short to be masked. */
export function unmaskedSettings(settings: Settings): string[] {
  return secretTexts(settings).flatMap(({ name, secrecy, text }) => {
    const texts = /URLs?$/.test(secrecy) ? listed(text).map(passwordOf) : [text];
    return texts.some(({ length }) => length > 0 && length < SHORTEST_MASKED) ? name : [];
  });
}

function secretTexts(settings: Settings): { name: string; secrecy: Secrecy; text: string }[] {
  return Object.entries(SETTINGS).flatMap(([name, schema]) => {
    const [known, text] = [SECRECY.get(schema), settings[name]];
    return known === undefined || text === undefined ? [] : { name, ...known, text };
  });
}

function passwordOf(url: string): string {
  return URL.canParse(url) ? percentDecoded(new URL(url).password) : '';
}

/** The secret key, even of a damaged key pair. The public key is no secret. */
function secretKeysIn(text: string): string[] {
  const named = [...text.matchAll(/secretKeyMultibase\W+(\w+)/g)].map(([, value = '']) => value);
  return [...named, ...(text.match(/z42[1-9A-HJ-NP-Za-km-z]+/g) ?? [])];
}

/** The password only: the user and the database name are ordinary words. */
function databaseSecrets(url: string): string[] {
  const [, written = ''] = /:\/\/[^:]*:(.*)@/s.exec(url) ?? [];
  if (!URL.canParse(url)) return [...secretPartsOf(url), written, percentDecoded(written)].filter(Boolean);
  const { password, searchParams } = new URL(url);
  return [url, password, percentDecoded(password), searchParams.get('password') ?? ''].filter(Boolean);
}

/** For "Bearer KEY", the key on its own is a secret too. */
function headerSecrets(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    SECRET_NAME.test(name) ? [value, value.split(' ').at(-1) ?? ''] : [],
  );
}
