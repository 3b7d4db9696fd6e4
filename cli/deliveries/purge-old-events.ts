import { loadConfig } from '../../service/config/config';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { findAllFeeds, registryOfFeed } from '../../service/outbox/find-feeds';
import { countPurgeable, purgeEvents } from '../../service/outbox/purge-events';
import type { Answer, Say } from '../answer';
import { agreeToPurge, purged, registryToPurge, timeOfOlderThan } from '../purging';
import { invalid } from './show-deliveries';

/** Selects the events to remove. `isAgreed`: no confirmation is asked for. */
export interface PurgeEventsOptions {
  olderThan: number | undefined;
  registry: string | undefined;
  isAgreed: boolean;
}

/**
 * Removes delivered events that were recorded and last sent at least the given number of days ago.
 * Undelivered events stay, and so do events that a reorganisation may need. The service may be running.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED; Refusal CONFIRMATION_MISSING.
 */
export async function purgeOldEvents(
  { olderThan, registry, isAgreed }: PurgeEventsOptions,
  say: Say,
): Promise<Answer> {
  if (olderThan === undefined) throw invalid('Give --older-than DAYS.');
  const before = timeOfOlderThan(olderThan);
  const config = loadConfig();
  const wanted = registryToPurge(registry, config);
  const database = await openDatabaseBesideService(config);
  try {
    const feeds = await findAllFeeds(database.db, wanted);
    let total = 0;
    for (const feed of feeds) {
      const events = await countPurgeable(database.db, feed, before);
      total += events;
      if (events === 0) continue;
      const time = new Date(before).toISOString();
      say(
        `About to remove ${events} events of ${registryOfFeed(feed)} that were last sent before ${time}. ` +
          'This cannot be undone.',
      );
    }
    if (total === 0) return purged(0, before);
    await agreeToPurge(isAgreed);
    let removed = 0;
    for (const feed of feeds) removed += await purgeEvents(database, feed, before);
    return purged(removed, before);
  } finally {
    await database.close();
  }
}
