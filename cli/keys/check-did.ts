import { existsSync, readFileSync } from 'node:fs';
import { pathsOf, readSettings } from '../../service/config/config';
import { didWebUrl } from '../../service/did/resolve-did-web';
import { fetchJson } from '../../service/did/fetch-json';
import { didWebOf, KEY_FRAGMENT, parseDidKeyPair, type DidKeyPair } from '../../service/base/did-key-pair';
import { ConfigurationError, messageOf } from '../../service/base/errors';
import { settingOf, type Settings } from '../../service/config/settings';
import { printable, printableJson } from '../terminal/printable';
import { compareDidDocuments, findSecretKeys } from './compare-did-documents';
import { didDocumentOf } from './did-document';
import { publicKeyOf } from './p256-multikey';

/**
 * The result of a check. `areEqual` is undefined if no difference was found but not everything could be
 * compared.
 */
export interface DidCheck {
  areEqual: boolean | undefined;
  lines: string[];
  json: string;
}

/** One of the three parts that must agree: its problem, or why it could not be read. */
interface Part {
  name: string;
  differences: string[];
  unknown?: string;
}

/** JSON media types. did:web asks for its own type, but resolvers accept any of these. */
const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;

/**
 * Compares DID_KEY_PAIRS, did.json and the document that DOMAIN serves, as a remote verifier sees it, and
 * lists every difference. Changes nothing.
 *
 * @param environment passed in by tests.
 * @throws ConfigurationError if DOMAIN is missing.
 */
export async function checkDid({ force }: { force: boolean }, environment?: Settings): Promise<DidCheck> {
  if (force) throw new ConfigurationError('ARGUMENT_INVALID', '--check changes nothing: leave --force out.');
  const { envFile, settings } = readSettings(environment);
  const domain = settingOf(settings, 'DOMAIN');
  if (domain === undefined) {
    const remedy = `Set DOMAIN in ${envFile} to the host that serves /.well-known/did.json.`;
    throw new ConfigurationError('NOT_CONFIGURED', 'DOMAIN is not set.', { remedy });
  }
  const did = didWebOf(domain);
  const { keyPair, part: keyPart } = checkKeyPair(settings.DID_KEY_PAIRS, did);
  const file = readDocument(pathsOf(envFile, settings).didDocumentPath);
  // Without a key, did.json is what DOMAIN should serve.
  const expected = keyPair ? didDocumentOf(keyPair) : file.document;
  const fileDifferences = [...file.part.differences, ...differencesOf(file.document, expected)];
  const filePart = { ...file.part, differences: fileDifferences };
  const parts = [keyPart, filePart, await checkServed(did, expected)];
  return report(did, parts);
}

/** `keyPair`: the key pair that the documents should publish, if it is known. */
function checkKeyPair(text: string | undefined, did: string): { keyPair?: DidKeyPair; part: Part } {
  const part = (...differences: string[]): Part => ({ name: 'DID_KEY_PAIRS', differences });
  if (text === undefined) return { part: part('is not set') };
  const parsed = parseDidKeyPair(text);
  if ('problem' in parsed) return { part: part([parsed.problem, parsed.remedy].filter(Boolean).join('. ')) };
  const { keyPair } = parsed;
  const unsuitable = problemOfPair(keyPair);
  if (unsuitable !== undefined) return { part: part(unsuitable) };
  if (keyPair.controller === did) return { keyPair, part: part() };
  return {
    keyPair: { ...keyPair, controller: did, id: `${did}#${KEY_FRAGMENT}` },
    part: part(`is the key of ${keyPair.controller}, but DOMAIN makes the issuer ${did}`),
  };
}

/** If the two halves do not belong together, no signature would ever verify. */
function problemOfPair({ publicKeyMultibase, secretKeyMultibase }: DidKeyPair): string | undefined {
  const publicKey = publicKeyOf(secretKeyMultibase);
  if (publicKey === undefined) return 'has a damaged secret key';
  return publicKey === publicKeyMultibase
    ? undefined
    : 'has a public key that does not belong to its secret key';
}

function readDocument(path: string): { document?: unknown; part: Part } {
  const part = (...differences: string[]): Part => ({ name: path, differences });
  if (!existsSync(path)) return { part: part('does not exist; `npx tdoc did` makes it') };
  try {
    const document = JSON.parse(readFileSync(path, 'utf8')) as unknown;
    return { document, part: part(...secretsIn(document)) };
  } catch (cause) {
    return {
      part: part(cause instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${messageOf(cause)}`),
    };
  }
}

async function checkServed(did: string, expected: unknown): Promise<Part> {
  const url = didWebUrl(did);
  if (url === undefined)
    return { name: did, differences: ['is not a did:web identifier that can be resolved'] };
  const fetched = await fetchJson(url);
  const name = fetched.url;
  if (fetched.kind !== 'json') {
    const isUnknown = fetched.kind === 'unavailable';
    return isUnknown
      ? { name, differences: [], unknown: fetched.problem }
      : { name, differences: [fetched.problem] };
  }
  const { json, contentType } = fetched;
  const differences = [
    ...transferProblems(url, name, contentType),
    ...secretsIn(json),
    ...differencesOf(json, expected),
  ];
  if (expected !== undefined) return { name, differences };
  return { name, differences, unknown: 'answers, but there is neither a key nor a document to compare with' };
}

function transferProblems(url: URL, end: string, contentType: string): string[] {
  const isElsewhere = new URL(end).host !== url.host || new URL(end).pathname !== url.pathname;
  return [
    ...(isElsewhere ? [`is where ${url.href} redirects to: not every verifier follows`] : []),
    ...(JSON_TYPE.test(contentType)
      ? []
      : [`has the content type ${contentType || '(none)'}, not one of JSON`]),
  ];
}

function secretsIn(document: unknown): string[] {
  return findSecretKeys(document).map(
    (pointer) => `${pointer} PUBLISHES A SECRET KEY: replace the key with \`npx tdoc did --force\``,
  );
}

function differencesOf(document: unknown, expected: unknown): string[] {
  if (document === undefined || expected === undefined) return [];
  return compareDidDocuments(expected, document).map(
    ({ pointer, problem }) => `${pointer || '(the whole)'} ${problem}`,
  );
}

function report(did: string, parts: readonly Part[]): DidCheck {
  const differs = parts.some(({ differences }) => differences.length > 0);
  const isUnknown = parts.some(({ unknown }) => unknown !== undefined);
  const lines = parts.flatMap(({ name, differences, unknown }) => {
    const all = unknown === undefined ? differences : [...differences, unknown];
    return all.length === 0
      ? [`ok       ${name}`]
      : all.map((text) => `${text === unknown ? 'unknown' : 'differs'}  ${name}: ${text}`);
  });
  const end = differs
    ? 'not all equal'
    : isUnknown
      ? 'no difference was found, but not everything could be compared'
      : 'all equal';
  const areEqual = differs ? false : isUnknown ? undefined : true;
  const json = { did, areEqual: areEqual ?? null, parts: parts.map((part) => ({ unknown: null, ...part })) };
  return {
    areEqual,
    json: printableJson(json),
    lines: [`issuer   ${did}`, ...lines, end].map((line) => printable(line)),
  };
}
