import { createHash } from 'node:crypto';
import { basename, dirname, join, relative, sep } from 'node:path';
import { PROJECT_ROOT } from '../service/project-root';

/**
 * Whose settings an env file holds. One installation may serve several tenants, each with its ENV_FILE.
 *
 * - `name`: for people and file names: `default` for `.env`, `acme` for `.env.acme` and `acme.env`.
 * - `key`: unique for each file, for the folder names of deployment journals.
 */
export interface Tenant {
  readonly name: string;
  readonly key: string;
  readonly envFile: string;
  readonly isDefault: boolean;
}

/** The tenant of an env file (an absolute path). */
export function tenantOf(envFile: string): Tenant {
  const path = relative(PROJECT_ROOT, envFile).split(sep).join('/');
  if (path === '.env') return { name: 'default', key: 'default', envFile, isDefault: true };
  const name = nameOf(basename(envFile));
  const hash = createHash('sha256').update(path).digest('hex').slice(0, 8);
  return { name, key: `${name}-${hash}`, envFile, isDefault: false };
}

/** Where the public half of the webhook signing key goes unless told otherwise. */
export function publicKeyFileOf(tenant: Tenant): string {
  if (tenant.isDefault) return join(PROJECT_ROOT, 'webhook-public-key.pem');
  return join(dirname(tenant.envFile), `${tenant.name}.webhook-public-key.pem`);
}

function nameOf(fileName: string): string {
  const bare = fileName.replace(/^\.env\b|\.env$/g, '');
  return bare.replace(/[^a-z0-9_]+/gi, '-').replace(/^-+|-+$/g, '') || 'default';
}
