import { systemClock } from '../../service/base/clock';
import { loadConfig } from '../../service/config/config';
import { openDatabaseBesideService } from '../../service/database/open-database';
import { channelsOf } from '../../service/outbox/channels';
import { findFeeds, registryOfFeed } from '../../service/outbox/find-feeds';
import { deliveriesOfEvent } from '../../service/outbox/deliveries';
import { purgedUpTo } from '../../service/outbox/purge-events';
import { redeliver, type Selection } from '../../service/outbox/redeliver';
import type { Answer } from '../answer';
import { printableJson } from '../terminal/printable';
import { invalid, registryOf, unknownEvent, unknownSubscription } from './show-deliveries';

/** Selects the events to send again. */
export interface SendAgainOptions {
  event: string | undefined;
  dead: boolean;
  fromBlock: number | undefined;
  registry: string | undefined;
  /** Name of the subscription. */
  subscription: string;
}

/** The result for one registry. `purgedUpTo`: the last block of the selection whose events were removed. */
interface Queued {
  registry: string;
  queued: number;
  alreadyWaiting: number;
  purgedUpTo: number | null;
}

/** Queues events for delivery again. A running service sends them at once. */
export async function sendAgain(options: SendAgainOptions): Promise<Answer> {
  const selection = selectionOf(options);
  const database = await openDatabaseBesideService(loadConfig());
  try {
    const feeds = await findFeeds(database.db, registryOf(options.registry));
    if ('fromBlock' in selection && feeds.length > 1) {
      const names = feeds.map(registryOfFeed).join(', ');
      throw invalid(`--from-block needs a registry: give --registry with one of ${names}.`);
    }
    if ('eventId' in selection) {
      const events = await deliveriesOfEvent(database.db, selection.eventId);
      const delivery = events
        .flatMap(({ deliveries }) => deliveries)
        .find(({ subscription }) => subscription === options.subscription);
      if (delivery === undefined) throw unknownEvent(selection.eventId);
      if (delivery.state === 'orphaned')
        throw invalid(
          `The block of event ${selection.eventId} was orphaned: the event cannot be sent again.`,
        );
    }
    const results: Queued[] = [];
    for (const feed of feeds) {
      const [channel] = await channelsOf(database.db, feed, options.subscription);
      if (channel === undefined) throw unknownSubscription(options.subscription);
      const { enqueued, waiting } = await redeliver(database, channel, selection, systemClock.now());
      const removedUpTo = (await purgedUpTo(database.db, feed)) ?? -1;
      const isPurged = 'fromBlock' in selection && selection.fromBlock <= removedUpTo;
      results.push({
        registry: registryOfFeed(feed),
        queued: enqueued,
        alreadyWaiting: waiting,
        purgedUpTo: isPurged ? removedUpTo : null,
      });
    }
    const lines = results.flatMap(linesOf);
    return {
      lines: lines.length === 0 ? ['nothing to send again'] : lines,
      json: printableJson({ registries: results }),
      isYes: true,
    };
  } finally {
    await database.close();
  }
}

function linesOf({ registry, queued, alreadyWaiting, purgedUpTo: removedUpTo }: Queued): string[] {
  const already = alreadyWaiting > 0 ? `, ${alreadyWaiting} waiting already` : '';
  return [
    ...(queued + alreadyWaiting > 0 ? [`${registry}: ${queued} queued${already}`] : []),
    ...(removedUpTo === null
      ? []
      : [`${registry}: old events of blocks up to ${removedUpTo} were removed before`]),
  ];
}

function selectionOf({ event, dead, fromBlock }: SendAgainOptions): Selection {
  const given = [event !== undefined, dead, fromBlock !== undefined].filter(Boolean);
  if (given.length !== 1) throw invalid('Give one of --event ID, --dead and --from-block N.');
  if (event !== undefined) return { eventId: event };
  return fromBlock === undefined ? { dead: true } : { fromBlock };
}
