import { systemClock } from '../../service/base/clock';
import { loadConfig } from '../../service/config/config';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { findFeeds, registryOfFeed } from '../../service/outbox/find-feeds';
import { historyOf } from '../../service/outbox/list-deliveries';
import { purgedUpTo } from '../../service/outbox/purge-events';
import { redeliver, type Selection } from '../../service/outbox/redeliver';
import { invalid, registryOf, unknownEvent } from './show-deliveries';

/** Selects the events to send again. */
export interface SendAgainOptions {
  event: string | undefined;
  dead: boolean;
  fromBlock: number | undefined;
  registry: string | undefined;
}

/** Queues events for delivery again and returns the lines to print. A running service sends them at once. */
export async function sendAgain(options: SendAgainOptions): Promise<string[]> {
  const selection = selectionOf(options);
  const database = await openDatabaseBesideService(loadConfig());
  try {
    const feeds = await findFeeds(database.db, registryOf(options.registry));
    if ('fromBlock' in selection && feeds.length > 1) {
      const names = feeds.map(registryOfFeed).join(', ');
      throw invalid(`--from-block needs a registry: give --registry with one of ${names}.`);
    }
    if ('eventId' in selection) {
      const [history] = await historyOf(database.db, selection.eventId);
      if (history === undefined) throw unknownEvent(selection.eventId);
      if (history.state === 'orphaned')
        throw invalid(
          `The block of event ${selection.eventId} was orphaned: the event cannot be sent again.`,
        );
    }
    const lines: string[] = [];
    for (const feed of feeds) {
      const { enqueued, waiting } = await redeliver(database, feed, selection, systemClock.now());
      const already = waiting > 0 ? `, ${waiting} waiting already` : '';
      if (enqueued + waiting > 0) lines.push(`${registryOfFeed(feed)}: ${enqueued} queued${already}`);
      const removedUpTo = (await purgedUpTo(database.db, feed)) ?? -1;
      if ('fromBlock' in selection && selection.fromBlock <= removedUpTo)
        lines.push(`${registryOfFeed(feed)}: old events of blocks up to ${removedUpTo} were removed before`);
    }
    return lines.length === 0 ? ['nothing to send again'] : lines;
  } finally {
    await database.close();
  }
}

function selectionOf({ event, dead, fromBlock }: SendAgainOptions): Selection {
  const given = [event !== undefined, dead, fromBlock !== undefined].filter(Boolean);
  if (given.length !== 1) throw invalid('Give one of --event ID, --dead and --from-block N.');
  if (event !== undefined) return { eventId: event };
  return fromBlock === undefined ? { dead: true } : { fromBlock };
}
