import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { keyNumberOf, nextKeyIdOf, parseDidKeyPair } from '../../service/base/did-key-pair';
import { codeOf, ConfigurationError, messageOf, SignerError } from '../../service/base/errors';
import { readSettings } from '../../service/config/config';
import { pathsOf } from '../../service/config/tenant';
import { shown, wrong } from '../../service/config/setting-types';
import type { ModuleIssuerKey } from '../../service/config/key-settings';
import type { Settings } from '../../service/config/settings';
import type { Answer, Say } from '../answer';
import { invalid, Refusal } from '../errors';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, withFileLock, writeFileAtomically } from '../files/write-file';
import { confirm } from '../terminal/dialog';
import { findSecretKeys } from './check-did';
import { issuerOf, makeIssuerKey, type NewIssuerKey, type VerificationMethod } from './did-key';
import { makeNextModuleKey, moduleIssuerOf, publicKeyInModule } from './module-keys';

/** A did.json whose keys can be changed. Everything else in it is kept as it is. */
type ChangeableDocument = z.infer<ReturnType<typeof changeable>>;

function changeable(did: string) {
  const relation = z.array(z.unknown()).default([]);
  return z.looseObject({
    id: z.literal(did),
    verificationMethod: z.array(z.looseObject({ id: z.string() })),
    authentication: relation,
    assertionMethod: z.array(z.string()),
    capabilityInvocation: relation,
    capabilityDelegation: relation,
  });
}

/** The setting of the key in use. */
type KeySetting = NewIssuerKey['setting'];

/**
 * The issuer's keys. `present`: that of `setting`, if it can be read: did.json publishes it. `loss`: why it
 * cannot be read.
 */
interface IssuerKeys {
  envFile: string;
  did: string;
  publicFile: string;
  document: ChangeableDocument;
  setting: KeySetting;
  moduleKey: ModuleIssuerKey | undefined;
  present: { id: string } | undefined;
  loss: string | undefined;
  /** Everything that may name a key of the issuer. */
  texts: readonly string[];
}

/**
 * Makes the issuer's next key. did.json keeps the earlier ones, so that their documents still verify.
 *
 * did.json is written first: a run that is killed before it writes the private key leaves a service that
 * signs with the key it had, which is still published. The next run then takes a later fragment, and leaves
 * the other one in did.json: it cannot know that nothing was signed with it.
 *
 * @param environment passed in by tests.
 * @throws ConfigurationError DID_DOCUMENT_UNUSABLE, NOT_CONFIGURED, CONFIGURATION_INVALID, FILE_UNWRITABLE.
 */
export async function rotateDidKey(environment?: Settings): Promise<Answer> {
  const { publicFile } = await readIssuerKeys(environment);
  return withFileLock(publicFile, async () => {
    const { envFile, did, document, moduleKey, present, texts } = await readIssuerKeys(environment);
    refuseUnwritable(envFile);
    const { method, setting, value } = moduleKey
      ? await makeNextModuleKey(moduleKey, present?.id, texts)
      : makeIssuerKey(nextKeyIdOf(did, texts), did);
    const secrets = findSecretKeys(document);
    write(publicFile, withKey(document, method));
    await setEnvValue(envFile, setting, value);
    const warning = shadowWarning(setting, value, environment);
    const earlier = keyIdsIn(document, did);
    const signer = present ? `until then it signs with ${present.id}` : 'it signs with the new key';
    return {
      lines: [
        `key            ${method.id}`,
        moduleKey
          ? `label          ${value}, in token ${moduleKey.module.token} (${setting} in ${envFile})`
          : `key pair       ${setting} in ${envFile} (secret)`,
        `DID document   ${publicFile} (public; it keeps ${earlier.join(', ')} for their documents)`,
        ...(warning ? [warning] : []),
        ...secrets.map((pointer) => `A secret key was in the DID document, at ${pointer}: it was taken out.`),
        ...(present ? [] : [`${setting} had no usable key before.`]),
        'Next:',
        '  1. Publish the DID document. The service serves it already; `npx tdoc did --check` compares.',
        '  2. Wait until no verifier has the DID document of before in its cache.',
        `  3. Restart the service: ${signer}.`,
        '  4. Revoke an earlier key only if somebody else may have it: `npx tdoc did --revoke`.',
      ],
      json: { did, key: method.id, earlier, setting, envFile, publicFile, warning: warning ?? null },
      isYes: true,
    };
  });
}

/**
 * Takes a key out of did.json, after a confirmation.
 *
 * @param named its fragment, with or without `#`, or its whole id.
 * @param environment passed in by tests.
 * @throws ConfigurationError as rotateDidKey, ARGUMENT_INVALID; Refusal KEY_IN_USE, CONFIRMATION_MISSING.
 */
export async function revokeDidKey(
  named: string,
  { yes = false }: { yes?: boolean | undefined },
  say: Say,
  environment?: Settings,
): Promise<Answer> {
  const { publicFile, id } = await readRevocable(named, environment);
  say(
    `About to take ${id} out of ${publicFile}. The documents that it signed then verify for nobody who ` +
      'resolves the DID. Their tokens stay: issue such documents again. A service that was not restarted ' +
      'since the key was replaced still signs with it.',
  );
  await confirm('revoke', yes, undefined, 'Nothing was written');
  return withFileLock(publicFile, async () => {
    const { did, document } = await readRevocable(named, environment);
    const changed = withoutKey(document, id);
    write(publicFile, changed);
    const keys = keyIdsIn(changed, did);
    return {
      lines: [
        `revoked        ${id}`,
        `DID document   ${publicFile} (public; it has ${keys.join(', ')})`,
        'Publish the DID document. The service serves the file already; `npx tdoc did --check` compares.',
      ],
      json: { did, revoked: id, keys, publicFile },
      isYes: true,
    };
  });
}

/** The issuer's keys, and the id of the one that is to be revoked. */
async function readRevocable(
  named: string,
  environment: Settings | undefined,
): Promise<IssuerKeys & { id: string }> {
  const keys = await readIssuerKeys(environment);
  const { did, publicFile, document, setting, present, loss } = keys;
  const id = named.includes('#') ? named.replace(/^#/, `${did}#`) : `${did}#${named}`;
  const ids = document.verificationMethod.map((method) => method.id);
  if (!ids.includes(id)) throw invalid(`${publicFile} has no key ${shown(id)}.`, `It has ${ids.join(', ')}.`);
  const remedy = 'Run `npx tdoc did --rotate` first, and restart the service.';
  const refusal = (why: string): Refusal =>
    new Refusal('KEY_IN_USE', `Nothing was written: ${why}. ${remedy}`, { remedy });
  if (present === undefined) throw refusal(`${setting} does not say which key is in use (${loss})`);
  if (id === present.id) throw refusal(`the service signs with ${id}`);
  // The highest number stays in did.json, so that a rotation never gives it away again.
  if ((keyNumberOf(id, did) ?? 0) > (keyNumberOf(present.id, did) ?? 0))
    throw refusal(`${id} is later than ${present.id}, the key of ${setting}`);
  return { ...keys, id };
}

/** @throws ConfigurationError; SignerError if the module is away. */
async function readIssuerKeys(environment: Settings | undefined): Promise<IssuerKeys> {
  const { envFile, settings } = readSettings(environment);
  const did = issuerOf(envFile, settings);
  const publicFile = pathsOf(envFile, settings).didDocumentPath;
  const moduleKey = moduleIssuerOf(envFile, settings);
  const setting = moduleKey ? 'DID_PKCS11_KEY' : 'DID_KEY_PAIRS';
  const pair = settings.DID_KEY_PAIRS ?? '';
  const own = moduleKey ? await readModuleKey(moduleKey) : readPair(pair, did);
  const known = 'publicKeyMultibase' in own ? own : undefined;
  const otherwise = otherwiseOf(setting, known !== undefined);
  const { text, document } = readChangeable(publicFile, did, otherwise);
  const present = known && publishedIn(document, known);
  if (known !== undefined && present === undefined)
    throw unusable(
      publicFile,
      `does not publish the key of ${setting}, ${known.id ?? known.publicKeyMultibase}`,
      otherwise,
    );
  const loss = 'loss' in own ? own.loss : undefined;
  return { envFile, did, publicFile, document, setting, moduleKey, present, loss, texts: [text, pair] };
}

/** The public half of a key in use, and its id if the setting has that. */
type OwnKey = { publicKeyMultibase: string; id?: string } | { loss: string };

/** A key that is not in its module is lost. If the module refuses everything, it makes no next key either. */
async function readModuleKey(key: ModuleIssuerKey): Promise<OwnKey> {
  try {
    return { publicKeyMultibase: await publicKeyInModule(key) };
  } catch (error) {
    if (!(error instanceof SignerError) || error.code !== 'SIGNER_REFUSED') throw error;
    return { loss: error.message };
  }
}

function readPair(pair: string, did: string): OwnKey {
  const parsed = parseDidKeyPair(pair);
  if ('remedy' in parsed) throw wrong('DID_KEY_PAIRS', parsed.problem, parsed.remedy);
  if ('problem' in parsed) return { loss: `it ${parsed.problem}` };
  if (parsed.keyPair.controller === did) return parsed.keyPair;
  throw wrong(
    'DID_KEY_PAIRS',
    `is the key of ${parsed.keyPair.controller}, but DOMAIN makes the issuer ${did}`,
    'Set DOMAIN back, or begin anew for this domain with `npx tdoc did --force`.',
  );
}

function readChangeable(
  path: string,
  did: string,
  otherwise: string,
): { text: string; document: ChangeableDocument } {
  const refuse = (problem: string, cause?: unknown): never => {
    throw unusable(path, problem, otherwise, cause);
  };
  let text: string;
  let value: unknown;
  try {
    text = readFileSync(path, 'utf8');
    value = JSON.parse(text);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return refuse('does not exist', cause);
    return refuse(
      cause instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${messageOf(cause)}`,
      cause,
    );
  }
  const parsed = changeable(did).safeParse(value);
  if (parsed.success) return { text, document: parsed.data };
  const place = parsed.error.issues[0]?.path.join('/') ?? '';
  return refuse(`is not the DID document of ${did}: /${place} is missing or wrong`, parsed.error);
}

function publishedIn(
  { verificationMethod, assertionMethod }: ChangeableDocument,
  { id, publicKeyMultibase }: { publicKeyMultibase: string; id?: string },
): { id: string } | undefined {
  const isPublished = (entry: { id: string; publicKeyMultibase?: unknown }): boolean =>
    entry.publicKeyMultibase === publicKeyMultibase && (id ?? entry.id) === entry.id;
  return verificationMethod.find((entry) => isPublished(entry) && assertionMethod.includes(entry.id));
}

/** The remedy if there is no copy of did.json. */
function otherwiseOf(setting: KeySetting, isKeyKnown: boolean): string {
  if (isKeyKnown)
    return (
      `If the key of ${setting} is the only one that ever signed, delete the file and run ` +
      '`npx tdoc did`, which makes it again.'
    );
  const command =
    setting === 'DID_KEY_PAIRS' ? '`npx tdoc did --force`' : '`npx tdoc setup --pkcs11`, without the file,';
  return `${command} begins anew: documents that earlier keys signed then no longer verify.`;
}

/** @param otherwise the remedy if there is no copy of the file. */
function unusable(path: string, problem: string, otherwise: string, cause?: unknown): ConfigurationError {
  const remedy = `Restore the file from a copy, or from what DOMAIN serves. ${otherwise}`;
  return new ConfigurationError('DID_DOCUMENT_UNUSABLE', `${path} ${problem}. ${remedy}`, { cause, remedy });
}

/** The keys of did.json that documents may name. */
function keyIdsIn({ verificationMethod }: ChangeableDocument, did: string): string[] {
  return verificationMethod.map(({ id }) => id).filter((id) => keyNumberOf(id, did) !== undefined);
}

/** Adds a key for every purpose. The earlier ones keep only that of verifying what they signed. */
function withKey(document: ChangeableDocument, method: VerificationMethod): ChangeableDocument {
  const instead = (relation: readonly unknown[]): unknown[] => [
    ...relation.filter((id) => typeof id !== 'string' || keyNumberOf(id, document.id) === undefined),
    method.id,
  ];
  return {
    ...withoutSecrets(document),
    id: document.id,
    verificationMethod: [...document.verificationMethod.map(withoutSecrets), method],
    authentication: instead(document.authentication),
    assertionMethod: [...document.assertionMethod, method.id],
    capabilityInvocation: instead(document.capabilityInvocation),
    capabilityDelegation: instead(document.capabilityDelegation),
  };
}

function withoutSecrets<T extends object>(object: T): T {
  const entries = Object.entries(object) as [string, unknown][];
  const kept = entries.filter(([name, value]) => findSecretKeys({ [name]: value }).length === 0);
  return Object.fromEntries(kept) as T;
}

/** Takes a key out of the document, and out of every relation that names it. */
function withoutKey(document: ChangeableDocument, id: string): ChangeableDocument {
  const isKey = (entry: unknown): boolean =>
    entry === id || (typeof entry === 'object' && entry !== null && 'id' in entry && entry.id === id);
  const entries = Object.entries(document).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.filter((entry) => !isKey(entry)) : value,
  ]);
  return Object.fromEntries(entries) as ChangeableDocument;
}

function write(path: string, document: ChangeableDocument): void {
  writeFileAtomically(path, `${JSON.stringify(document, null, 2)}\n`, PUBLIC_MODE);
}
