import { createHash } from 'node:crypto';
import { devNull } from 'node:os';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { PROJECT_ROOT } from '../base/project-root';
import type { Settings } from './settings';

/** The owner of an env file's settings. One installation may serve several, each with its ENV_FILE. */
export interface Tenant {
  /** For people and file names: `default` for `.env`, `acme` for `.env.acme` and `acme.env`. */
  name: string;
  /** Unique for each file; used in the file names of deployments. */
  key: string;
  envFile: string;
  isDefault: boolean;
}

/** The tenant of an env file (an absolute path). */
export function tenantOf(envFile: string): Tenant {
  const path = relative(PROJECT_ROOT, envFile).split(sep).join('/');
  if (path === '.env') return { name: 'default', key: 'default', envFile, isDefault: true };
  // Nothing else is removed: two env files of one folder must not have the same name.
  const name = basename(envFile).replace(/^\.env(?:[.-]|$)|\.env$/g, '') || 'default';
  const plain = name.replace(/[^a-z0-9_]+/gi, '-').replace(/^-+|-+$/g, '') || 'default';
  const hash = createHash('sha256').update(path).digest('hex').slice(0, 8);
  return { name, key: `${plain}-${hash}`, envFile, isDefault: false };
}

/**
 * Absolute default paths of a tenant's files: DID_DOCUMENT_PATH, DATA_DIR, SERVICE_CONFIG, and the public
 * half of the key that signs webhooks. The files of `.env` are at the project's top. Those of any other env
 * file are beside it, prefixed with its name, so that no two tenants share a file.
 */
export function tenantFilesOf({ isDefault, envFile, name }: Tenant) {
  // Without an env file all settings are in the environment, and there is one tenant.
  const isOnly = isDefault || envFile === devNull;
  const file = (own: string): string =>
    isOnly ? join(PROJECT_ROOT, own) : join(dirname(envFile), `${name}.${own}`);
  return {
    didDocument: file('did.json'),
    dataDir: file(isOnly ? '.data' : 'data'),
    serviceConfig: file('service.config.json'),
    webhookPublicKey: file('webhook-public-key.pem'),
  };
}

/** Absolute paths of a service's files. */
export interface ServicePaths {
  readonly dataDir: string;
  readonly didDocumentPath: string;
  readonly serviceConfig: string;
}

/** The paths in the settings, or the defaults of this env file's tenant. */
export function pathsOf(envFile: string, settings: Settings): ServicePaths {
  const files = tenantFilesOf(tenantOf(envFile));
  return {
    dataDir: resolve(PROJECT_ROOT, settings.DATA_DIR ?? files.dataDir),
    didDocumentPath: resolve(PROJECT_ROOT, settings.DID_DOCUMENT_PATH ?? files.didDocument),
    serviceConfig: resolve(PROJECT_ROOT, settings.SERVICE_CONFIG ?? files.serviceConfig),
  };
}

/**
 * Tells a tenant's operator how to run the commands that messages name. Without ENV_FILE such a command, for
 * example `npx tdoc did --force`, would replace the key of `.env`. Undefined for `.env` itself.
 */
export function commandHint(envFile: string): string | undefined {
  const command = commandFor(envFile, 'tdoc …');
  return command.startsWith('npx') ? undefined : `Run commands for this tenant with its ENV_FILE: ${command}`;
}

/** `npx …` for this env file (an absolute path). */
export function commandFor(envFile: string, words: string): string {
  const command = `npx ${words}`;
  if (tenantOf(envFile).isDefault || envFile === devNull) return command;
  const path = relative(PROJECT_ROOT, envFile);
  const shown = path.startsWith('..') ? envFile : path;
  const quoted = /^[\w./:@%+=,-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
  return `ENV_FILE=${quoted} ${command}`;
}
