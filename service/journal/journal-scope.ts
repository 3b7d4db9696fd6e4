/**
 * Identifies one journal: other issuers and registries may share the database. The wallet that mints is not
 * part of it.
 */
export interface JournalScope {
  chainId: number;
  /** Lower case. */
  registryAddress: string;
  /** The issuer's DID. */
  issuer: string;
}

/** The `scope` of a journal's rows: `<chainId>:<registry>:<DID>`. */
export function scopeName({ chainId, registryAddress, issuer }: JournalScope): string {
  return `${registryName(chainId, registryAddress)}:${issuer}`;
}

/** Name of the right to mint the documents of a journal, which one process at a time has. */
export function mintingRightOf(scope: JournalScope): string {
  return `mint:${scopeName(scope)}`;
}

/** Inverse of scopeName. */
export function parseScope(name: string): JournalScope {
  const [chainId, registryAddress = '', ...issuer] = name.split(':');
  return { chainId: Number(chainId), registryAddress, issuer: issuer.join(':') };
}
import { registryName } from '../base/registry-name';
