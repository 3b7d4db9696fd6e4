import { existsSync, readFileSync } from 'node:fs';
import { systemTime } from '../../service/base/time';
import { readSettings } from '../../service/config/config';
import { pathsOf } from '../../service/config/tenant';
import { didWebUrl } from '../../service/did/resolve-did-web';
import { createFetching } from '../../service/did/fetch-json';
import { keyNumberOf, parseDidKeyPair, type DidKeyPair } from '../../service/base/did-key-pair';
import { cut, messageOf, SignerError } from '../../service/base/errors';
import { pointerStep } from '../../service/base/json';
import type { ModuleIssuerKey } from '../../service/config/key-settings';
import type { Settings } from '../../service/config/settings';
import type { Answer } from '../answer';
import { didDocumentOf, issuerOf, keysIn, publicKeyOf, type VerificationMethod } from './did-key';
import { moduleIssuerOf, publicKeyInModule } from './module-keys';

/** One of the three parts that must agree: its problem, or why it could not be read. */
export interface Part {
  name: string;
  differences: string[];
  unknown?: string;
}

/** JSON media types. did:web asks for its own type, but resolvers accept any of these. */
const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;

/** Names that key formats use for a secret part; `d` is that of a JWK (RFC 7518, section 6.2.2). */
const SECRET_NAMES = /^(secret|private)Key/i;
/** A P-256 secret key in Multikey encoding. */
const SECRET_VALUE = /z42[1-9A-HJ-NP-Za-km-z]{40,}/;

/**
 * Compares the key of the settings, did.json and the document that DOMAIN serves, and lists every difference.
 * Changes nothing. The answer is not known if no difference was found but not everything could be compared.
 *
 * @param environment passed in by tests.
 * @throws ConfigurationError if DOMAIN is missing.
 */
export async function checkDid(environment?: Settings): Promise<Answer> {
  const { did, parts } = await compareDid(environment);
  return report(did, parts);
}

/**
 * The three parts of the issuer's DID, as a remote verifier sees them.
 *
 * @throws ConfigurationError if DOMAIN is missing.
 */
export async function compareDid(environment?: Settings): Promise<{ did: string; parts: Part[] }> {
  const { envFile, settings } = readSettings(environment);
  const did = issuerOf(envFile, settings);
  const moduleKey = moduleIssuerOf(envFile, settings);
  const setting = moduleKey ? 'DID_PKCS11_KEY' : 'DID_KEY_PAIRS';
  const file = readDocument(pathsOf(envFile, settings).didDocumentPath, setting);
  const { keyIn, part: keyPart } = moduleKey
    ? await checkModuleKey(moduleKey, file.document)
    : checkKeyPair(settings.DID_KEY_PAIRS, did);
  const expectedOf = (document: unknown): unknown => {
    const key = keyIn(document);
    return key && didDocumentOf(key, earlierKeysIn(document, key));
  };
  // Without a key, did.json is what DOMAIN should serve. Without did.json, DOMAIN alone has the earlier keys.
  const expectedAtDomain = (served: unknown): unknown => expectedOf(file.document ?? served) ?? file.document;
  const key = keyIn(file.document);
  const fileDifferences = [
    ...file.part.differences,
    ...(key ? laterKeysIn(file.document, key, setting) : []),
    ...differencesOf(file.document, expectedOf(file.document)),
  ];
  const filePart = { ...file.part, differences: fileDifferences };
  return { did, parts: [keyPart, filePart, await checkServed(did, expectedAtDomain)] };
}

/** The keys of a DID document, except the present one. */
function earlierKeysIn(document: unknown, { id, controller }: VerificationMethod): VerificationMethod[] {
  return keysIn(document, controller).filter((key) => key.id !== id);
}

/** A rotation publishes a key before it writes the private one. */
function laterKeysIn(document: unknown, { id, controller }: VerificationMethod, setting: string): string[] {
  const numberOf = (key: string): number => keyNumberOf(key, controller) ?? 0;
  const later = keysIn(document, controller).filter((key) => numberOf(key.id) > numberOf(id));
  return later.map(
    (key) =>
      `publishes ${key.id}, which is later than the key of ${setting}: a rotation was interrupted, or ` +
      `${setting} was restored from an old copy. Restore the later one, or run \`npx tdoc did --rotate\``,
  );
}

/** `keyIn`: the key that a DID document should have as the present one, if it is known. */
interface CheckedKey {
  keyIn: (document: unknown) => VerificationMethod | undefined;
  part: Part;
}

const unknownKey = (): undefined => undefined;

/** A module has no id for its key: the documents say that. */
async function checkModuleKey(key: ModuleIssuerKey, file: unknown): Promise<CheckedKey> {
  const { label, controller } = key;
  const part = { name: 'DID_PKCS11_KEY', differences: [] };
  try {
    const publicKey = await publicKeyInModule(key);
    const keyIn: CheckedKey['keyIn'] = (document) =>
      keysIn(document, controller).find((one) => one.publicKeyMultibase === publicKey);
    if (file === undefined || keyIn(file)) return { keyIn, part };
    const difference = `the module's key "${label}", ${publicKey}, is not in did.json`;
    return { keyIn, part: { ...part, differences: [difference] } };
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    const { code, message } = error;
    if (code !== 'SIGNER_REFUSED') return { keyIn: unknownKey, part: { ...part, unknown: message } };
    return { keyIn: unknownKey, part: { ...part, differences: [message] } };
  }
}

function checkKeyPair(text: string | undefined, did: string): CheckedKey {
  const part = (...differences: string[]): Part => ({ name: 'DID_KEY_PAIRS', differences });
  const withoutKey = (problem: string): CheckedKey => ({ keyIn: unknownKey, part: part(problem) });
  if (text === undefined) return withoutKey('is not set');
  const parsed = parseDidKeyPair(text);
  if ('problem' in parsed) return withoutKey([parsed.problem, parsed.remedy].filter(Boolean).join('. '));
  const { keyPair } = parsed;
  const unsuitable = problemOfPair(keyPair);
  if (unsuitable !== undefined) return withoutKey(unsuitable);
  if (keyPair.controller === did) return { keyIn: () => keyPair, part: part() };
  const ofDomain = { ...keyPair, controller: did, id: keyPair.id.replace(keyPair.controller, did) };
  return {
    keyIn: () => ofDomain,
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

function readDocument(path: string, setting: string): { document?: unknown; part: Part } {
  const part = (...differences: string[]): Part => ({ name: path, differences });
  if (!existsSync(path))
    return { part: part(`does not exist; \`npx tdoc did\` makes it, with the key of ${setting} only`) };
  try {
    const document = JSON.parse(readFileSync(path, 'utf8')) as unknown;
    return { document, part: part(...secretsIn(document)) };
  } catch (cause) {
    return {
      part: part(cause instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${messageOf(cause)}`),
    };
  }
}

async function checkServed(did: string, expectedFor: (served: unknown) => unknown): Promise<Part> {
  const url = didWebUrl(did);
  if (url === undefined)
    return { name: did, differences: ['is not a did:web identifier that can be resolved'] };
  const fetched = await createFetching(systemTime)(url);
  const name = fetched.url;
  if (fetched.kind !== 'json') {
    const isUnknown = fetched.kind === 'unavailable';
    return isUnknown
      ? { name, differences: [], unknown: fetched.problem }
      : { name, differences: [fetched.problem] };
  }
  const { json, contentType } = fetched;
  const expected = expectedFor(json);
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
    (pointer) =>
      `${pointer} PUBLISHES A SECRET KEY: make another with \`npx tdoc did --rotate\`, then revoke this ` +
      'one with `npx tdoc did --revoke`',
  );
}

function differencesOf(document: unknown, expected: unknown): string[] {
  if (document === undefined || expected === undefined) return [];
  return differencesBetween(expected, document);
}

function report(did: string, parts: readonly Part[]): Answer {
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
  return {
    lines: [`issuer   ${did}`, ...lines, end],
    json: { did, areEqual: areEqual ?? null, parts: parts.map((part) => ({ unknown: null, ...part })) },
    isYes: areEqual,
  };
}

/**
 * Every place where `actual` differs from `expected`. Order counts: docs/specification.md 3.9 and
 * JSON-LD give it a meaning in `@context`. Unexpected values are not repeated because they may be secret.
 */
function differencesBetween(expected: unknown, actual: unknown, pointer = ''): string[] {
  const at = pointer || '(the whole)';
  if (expected === undefined) return [`${at} should not be there`];
  if (actual === undefined) return [`${at} is missing; it should be ${shown(expected)}`];
  if (!isContainer(expected) || !isContainer(actual) || Array.isArray(expected) !== Array.isArray(actual))
    return expected === actual ? [] : [`${at} is ${shown(actual)}; it should be ${shown(expected)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) =>
    differencesBetween(own(expected, name), own(actual, name), pointer + pointerStep(name)),
  );
}

/** Pointers to secret keys in a public document. */
export function findSecretKeys(document: unknown, pointer = ''): string[] {
  if (typeof document === 'string') return document.search(SECRET_VALUE) < 0 ? [] : [pointer];
  if (!isContainer(document)) return [];
  const isJwk = 'kty' in document && 'd' in document;
  return Object.entries(document).flatMap(([name, value]: [string, unknown]) => {
    const at = `${pointer}/${name}`;
    return SECRET_NAMES.test(name) || (isJwk && name === 'd') ? [at] : findSecretKeys(value, at);
  });
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function own(container: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(container, name) ? container[name] : undefined;
}

/** A value for display, without any secret key in it. */
function shown(value: unknown): string {
  if (findSecretKeys(value).length > 0) return 'a value that contains a secret key';
  return cut(JSON.stringify(value));
}
