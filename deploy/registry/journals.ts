import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tenant } from '../../service/config/tenant';
import type { ChainIdentity } from './chain-identity';

/**
 * A deployment journal: the folder in which Hardhat Ignition records what it has sent, one for each
 * deployment. The folder's name contains the chain's fingerprint, so two local nodes, or one node before and
 * after a restart, never share a journal.
 */
export interface Journal {
  readonly id: string;
  readonly folder: string;
}

/** Our own note beside Ignition's files. */
export interface JournalNote {
  /** URL of the node that the deployment went through, without its secrets. */
  readonly node: string;
  readonly tokenName?: string;
  readonly tokenSymbol?: string;
  /** Raw transactions that were signed to be sent, on public networks (lost-transaction.ts). */
  readonly signed?: readonly string[];
}

const NOTE_FILE = 'note.json';
const ADDRESSES_FILE = 'deployed_addresses.json';
const JOURNAL_FILE = 'journal.jsonl';

/** The journal of the chain's infrastructure. */
export function infrastructureJournal(root: string, chain: ChainIdentity): Journal {
  return journal(root, chainPrefix(chain));
}

/** The journal of a tenant's n-th registry. */
export function registryJournal(root: string, chain: ChainIdentity, tenant: Tenant, n: number): Journal {
  return journal(root, `${chainPrefix(chain)}-${tenant.key}-${n}`);
}

/** Number of a tenant's newest registry on this chain; 0 if there is none. */
export function newestRegistry(root: string, chain: ChainIdentity, tenant: Tenant): number {
  const prefix = `${chainPrefix(chain)}-${tenant.key}-`;
  const numbers = journalNames(root)
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter(Number.isSafeInteger);
  return Math.max(0, ...numbers);
}

/** Addresses by Ignition's future id ("Registry#TokenRegistry"); empty if nothing was deployed. */
export function deployedAddresses({ folder }: Journal): Record<string, string> {
  return (readJson(join(folder, ADDRESSES_FILE)) ?? {}) as Record<string, string>;
}

/** Our note beside the journal, if there is one. */
export function readNote({ folder }: Journal): JournalNote | undefined {
  return readJson(join(folder, NOTE_FILE)) as JournalNote | undefined;
}

/** A transaction that Ignition planned or sent without an answer: its id and its nonce. */
export interface PlannedTransaction {
  readonly futureId: string;
  readonly nonce: number;
}

/** Transactions that Ignition planned and has no hash of. */
export function plannedTransactions({ folder }: Journal): PlannedTransaction[] {
  const file = join(folder, JOURNAL_FILE);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  const planned = new Map<string, PlannedTransaction>();
  for (const line of lines) {
    const { type, futureId, nonce } = JSON.parse(line) as PlannedTransaction & { type: string };
    if (type === 'TRANSACTION_PREPARE_SEND') planned.set(futureId, { futureId, nonce });
    if (type === 'TRANSACTION_SEND' || type === 'WIPE_APPLY') planned.delete(futureId);
  }
  return [...planned.values()];
}

/** Writes our note beside the journal. Ignition ignores the file. */
export function writeNote({ folder }: Journal, note: JournalNote): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, NOTE_FILE), `${JSON.stringify(note, null, 2)}\n`);
}

/** Deletes a journal. */
export function dropJournal({ folder }: Journal): void {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Deletes the journals of earlier chains of the local node at this URL: its chains live in memory, so they
 * are gone.
 *
 * @param chain the chain that it runs now; undefined after the node has ended.
 */
export function dropJournalsOfEarlierChains(root: string, node: string, chain?: ChainIdentity): void {
  const current = chain && chainPrefix(chain);
  for (const name of journalNames(root)) {
    const isCurrent = current !== undefined && (name === current || name.startsWith(`${current}-`));
    const candidate = journal(root, name);
    if (!isCurrent && readNote(candidate)?.node === node) dropJournal(candidate);
  }
}

function journal(root: string, id: string): Journal {
  return { id, folder: join(root, id) };
}

function chainPrefix({ chainId, fingerprint }: ChainIdentity): string {
  return `chain-${chainId}-${fingerprint}`;
}

function journalNames(root: string): string[] {
  return existsSync(root) ? readdirSync(root).filter((name) => name.startsWith('chain-')) : [];
}

function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}
