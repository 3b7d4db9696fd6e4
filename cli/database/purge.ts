import { systemTime } from '../../service/base/time';
import { ConfigurationError } from '../../service/base/errors';
import { registryName } from '../../service/base/registry-name';
import type { Config } from '../../service/config/config';
import { LONGEST_RETENTION_DAYS } from '../../service/config/settings';
import type { Database } from '../../service/database/database';
import { createDatabaseJournal } from '../../service/journal/journal';
import { countEnded, findJournals } from '../../service/journal/read-issuances';
import { scopeName, type JournalScope } from '../../service/journal/issuance';
import { findAllFeeds, registryOfFeed } from '../../service/outbox/feeds';
import { countPurgeable, purgeEvents } from '../../service/outbox/purge-events';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import type { Answer, Say } from '../answer';
import { invalid } from '../errors';
import { confirm } from '../terminal/dialog';
import { storedRegistryOf, tokenIdOf, withDatabase } from './with-database';

/** The options of `tdoc purge-documents` and `tdoc purge-events`. `olderThan`: days. `yes`: does not ask. */
export interface PurgeOptions {
  olderThan?: number;
  token?: string;
  registry?: string;
  yes?: true;
}

/**
 * Removes issued documents from the database: one, or all that became final or failed at least the given
 * number of days ago. Documents that are still being issued are kept.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED, DOCUMENT_UNKNOWN; Refusal
 *   CONFIRMATION_MISSING; RequestError TOKEN_ID_INVALID.
 */
export async function purgeDocuments(options: PurgeOptions, say: Say): Promise<Answer> {
  const { olderThan, token } = options;
  if ((token === undefined) === (olderThan === undefined))
    throw invalid('Give one of --older-than DAYS and --token ID.');
  return withDatabase(async (database, config) => {
    const journals = await findJournals(database.db, registryToPurge(options, config));
    if (token !== undefined) return purgeDocument(database, journals, { ...options, token }, say);
    const before = timeOf(olderThan ?? 0);
    const parts: Part[] = [];
    for (const scope of journals) {
      const { documents, bytes } = await countEnded(database.db, scope, before);
      if (documents === 0) continue;
      const size = `${documents} (${(bytes / 1_000_000).toFixed(1)} MB)`;
      parts.push({
        about: `the documents of ${scopeName(scope)} that ended before ${isoOf(before)}: ${size}`,
        remove: () => createDatabaseJournal(database, scope, systemTime).purge(before),
      });
    }
    return purge(parts, before, options, say);
  });
}

async function purgeDocument(
  database: Database,
  journals: readonly JournalScope[],
  { token, yes }: PurgeOptions & { token: string },
  say: Say,
): Promise<Answer> {
  const tokenId = tokenIdHexOf(tokenIdOf(token));
  for (const scope of journals) {
    const journal = createDatabaseJournal(database, scope, systemTime);
    const issuance = await journal.find(tokenId);
    if (issuance === undefined) continue;
    const { state } = issuance;
    if (state !== 'final' && state !== 'failed')
      throw invalid(`The document of token ${tokenId} is being issued: it cannot be removed.`);
    await agree([`the document of token ${tokenId} (${state}) of ${scopeName(scope)}`], yes, say);
    await journal.remove(tokenId);
    return { lines: ['removed'], json: { removed: 1, tokenId }, isYes: true };
  }
  const remedy = 'Check --registry, and DATA_DIR or DATABASE_URL.';
  throw new ConfigurationError('DOCUMENT_UNKNOWN', `No document of token ${tokenId} is kept.`, { remedy });
}

/**
 * Removes delivered events that were recorded and last sent at least the given number of days ago.
 * Undelivered events stay, and so do events that a reorganisation may need.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED; Refusal CONFIRMATION_MISSING.
 */
export async function purgeOldEvents(options: PurgeOptions, say: Say): Promise<Answer> {
  if (options.olderThan === undefined) throw invalid('Give --older-than DAYS.');
  const before = timeOf(options.olderThan);
  return withDatabase(async (database, config) => {
    const parts: Part[] = [];
    for (const feed of await findAllFeeds(database.db, registryToPurge(options, config))) {
      const events = await countPurgeable(systemTime, database.db, feed, before);
      if (events === 0) continue;
      parts.push({
        about: `${events} events of ${registryOfFeed(feed)} that were last sent before ${isoOf(before)}`,
        remove: () => purgeEvents(systemTime, database, feed, before),
      });
    }
    return purge(parts, before, options, say);
  });
}

/** Records of one registry that are old enough. `remove` resolves to their number. */
interface Part {
  about: string;
  remove: () => Promise<number>;
}

async function purge(
  parts: readonly Part[],
  before: number,
  { yes }: PurgeOptions,
  say: Say,
): Promise<Answer> {
  let removed = 0;
  if (parts.length > 0) {
    const all = parts.map(({ about }) => about);
    await agree(all, yes, say);
  }
  for (const { remove } of parts) removed += await remove();
  return {
    lines: [removed === 0 ? 'nothing to remove' : `${removed} removed`],
    json: { removed, before: isoOf(before) },
    isYes: true,
  };
}

/** @throws Refusal CONFIRMATION_MISSING. */
async function agree(all: readonly string[], isAgreed = false, say: Say): Promise<void> {
  for (const about of all) say(`About to remove ${about}. This cannot be undone.`);
  await confirm('purge', isAgreed, undefined, 'Nothing was removed');
}

/**
 * The registry of `--registry`, or else TOKEN_REGISTRY_ADDRESS. Other tenants may share the database; their
 * registries must be named.
 */
function registryToPurge({ registry }: PurgeOptions, { network, tokenRegistryAddress }: Config): string {
  const named = storedRegistryOf(registry);
  if (named !== undefined) return named;
  if (tokenRegistryAddress !== undefined) return registryName(network.chainId, tokenRegistryAddress);
  const remedy = 'Set TOKEN_REGISTRY_ADDRESS, or give --registry.';
  throw new ConfigurationError('NOT_CONFIGURED', `No registry is set. ${remedy}`, { remedy });
}

const DAY_MS = 86_400_000;

/** Epoch milliseconds of the moment `days` days ago. */
function timeOf(days: number): number {
  if (days > LONGEST_RETENTION_DAYS) throw invalid(`--older-than takes 0 to ${LONGEST_RETENTION_DAYS} days.`);
  return systemTime.now() - days * DAY_MS;
}

function isoOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
