import { systemClock } from '../../service/base/clock';
import { loadConfig, type Config } from '../../service/config/config';
import type { Database } from '../../service/database/database';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { ConfigurationError } from '../../service/base/errors';
import { createDatabaseJournal } from '../../service/journal/database-journal';
import { countEnded, findJournals } from '../../service/journal/find-journals';
import { scopeName, type JournalScope } from '../../service/journal/journal-scope';
import { parseTokenId, tokenIdHexOf } from '../../service/registry/token-id-forms';
import { invalid } from '../deliveries/show-deliveries';
import type { Answer, Say } from '../answer';
import { agreeToPurge, purged, registryToPurge, timeOfOlderThan } from '../purging';
import { printableJson } from '../terminal/printable';

/** The documents to delete. `isAgreed`: no confirmation is asked for. */
export interface PurgeOptions {
  olderThan: number | undefined;
  token: string | undefined;
  registry: string | undefined;
  isAgreed: boolean;
}

/** The documents to remove from one registry. `before`: epoch milliseconds. */
type Selection = { registry: string } & ({ tokenId: string } | { before: number });

/**
 * Removes issued documents from the database: one, or all that became final or failed at least the given
 * number of days ago. Documents that are still being issued are kept. The service may be running.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED, DOCUMENT_UNKNOWN; Refusal
 *   CONFIRMATION_MISSING; RequestError TOKEN_ID_INVALID.
 */
export async function purgeDocuments(options: PurgeOptions, say: Say): Promise<Answer> {
  const config = loadConfig();
  const selection = selectionOf(options, config);
  const database = await openDatabaseBesideService(config);
  try {
    const journals = await findJournals(database.db, selection.registry);
    if ('tokenId' in selection)
      return await removeOne(database, journals, selection.tokenId, options.isAgreed, say);
    return await removeOld(database, journals, selection.before, options.isAgreed, say);
  } finally {
    await database.close();
  }
}

function selectionOf({ olderThan, token, registry: named }: PurgeOptions, config: Config): Selection {
  const registry = registryToPurge(named, config);
  if (token !== undefined && olderThan === undefined) {
    const tokenId = parseTokenId(token);
    if (tokenId === undefined) throw invalid(`--token ${token} is not the id of a token.`);
    return { registry, tokenId: tokenIdHexOf(tokenId) };
  }
  if (token !== undefined || olderThan === undefined)
    throw invalid('Give one of --older-than DAYS and --token ID.');
  return { registry, before: timeOfOlderThan(olderThan) };
}

async function removeOne(
  database: Database,
  journals: readonly JournalScope[],
  tokenId: string,
  isAgreed: boolean,
  say: Say,
): Promise<Answer> {
  for (const scope of journals) {
    const journal = createDatabaseJournal(database, scope, systemClock);
    const issuance = await journal.find(tokenId);
    if (issuance === undefined) continue;
    if (issuance.state !== 'final' && issuance.state !== 'failed')
      throw invalid(`The document of token ${tokenId} is being issued: it cannot be removed.`);
    say(
      `About to remove the document of token ${tokenId} (${issuance.state}) of ${scopeName(scope)}. ` +
        'This cannot be undone.',
    );
    await agreeToPurge(isAgreed);
    await journal.remove(tokenId);
    return { lines: ['removed'], json: printableJson({ removed: 1, tokenId }), isYes: true };
  }
  const remedy = 'Check --registry, and DATA_DIR or DATABASE_URL.';
  const message = `No document of token ${tokenId} is kept.`;
  throw new ConfigurationError('DOCUMENT_UNKNOWN', message, { remedy });
}

async function removeOld(
  database: Database,
  journals: readonly JournalScope[],
  before: number,
  isAgreed: boolean,
  say: Say,
): Promise<Answer> {
  let total = 0;
  for (const scope of journals) {
    const { documents, bytes } = await countEnded(database.db, scope, before);
    total += documents;
    if (documents === 0) continue;
    const size = `${documents} (${(bytes / 1_000_000).toFixed(1)} MB)`;
    const time = new Date(before).toISOString();
    say(
      `About to remove the documents of ${scopeName(scope)} that ended before ${time}: ${size}. ` +
        'This cannot be undone.',
    );
  }
  if (total === 0) return purged(0, before);
  await agreeToPurge(isAgreed);
  let removed = 0;
  for (const scope of journals)
    removed += await createDatabaseJournal(database, scope, systemClock).purge(before);
  return purged(removed, before);
}
