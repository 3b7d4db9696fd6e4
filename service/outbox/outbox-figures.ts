import { sql, type Expression, type Kysely } from 'kysely';
import type { RegistryName } from '../base/registry-name';
import type { Schema } from '../database/schema';
import { registryOfFeed } from './feeds';
import { HIGHEST_KEY } from './stored-events';

/** The figures of a feed's outbox. */
export interface OutboxFigures {
  registry: RegistryName;
  /** The first block that has not been read. */
  nextBlock: number;
  /** Events not delivered yet. */
  waiting: number;
  /** Since when the event that waits longest could have been delivered to an active subscription. */
  oldestWaitingSince: number | undefined;
  deadLetters: number;
  /** Delivered events whose block was orphaned and whose transaction has not been mined again. */
  orphaned: number;
}

/** Counts waiting events, dead letters and orphans of feeds. Each count uses an index or a small table. */
export async function outboxFiguresOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<OutboxFigures[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('feeds')
    .select(['feeds.feed', 'feeds.next_block as nextBlock'])
    .select((eb) => {
      const channels = eb.selectFrom('channels').select('id').whereRef('channels.feed', '=', 'feeds.id');
      return [
        waitingIn(channels).as('waiting'),
        oldestIn(channels.where('state', '=', 'active')).as('oldest'),
        lettersIn(channels).as('deadLetters'),
        DELIVERED_ORPHANS.as('orphaned'),
      ];
    })
    .where('feeds.feed', 'in', feeds)
    .orderBy('feeds.feed')
    .execute();
  return rows.map(({ feed, oldest, ...figures }) => ({
    ...figures,
    registry: registryOfFeed(feed),
    oldestWaitingSince: oldest ?? undefined,
  }));
}

/**
 * Number of undelivered events of a subscription: those that wait, dead letters, and stored events that are
 * still to be enqueued, wanted or not. The latter are not counted for an owner, who may not see all of them.
 */
export async function undeliveredOf(
  db: Kysely<Schema>,
  { id: subscription, owner }: { id: number; owner: string | null },
): Promise<number> {
  const channels = db.selectFrom('channels').select('id').where('subscription', '=', subscription);
  const { toFill, waiting, deadLetters } = await db
    .selectFrom('channels')
    .innerJoin('events', 'events.feed', 'channels.feed')
    .select((eb) => [
      eb.fn.countAll<number>().as('toFill'),
      waitingIn(channels).as('waiting'),
      lettersIn(channels).as('deadLetters'),
    ])
    .where('channels.subscription', '=', subscription)
    .where(sql<boolean>`(block_number, log_index) > (fill_block, coalesce(fill_index, ${HIGHEST_KEY}))`)
    .where('events.audience', '=', 'all')
    .where('events.orphaned_at', 'is', null)
    .executeTakeFirstOrThrow();
  return (owner === null ? toFill : 0) + waiting + deadLetters;
}

const DELIVERED_ORPHANS = sql<number>`(select count(*) from orphans
  where feed = feeds.id and outcome = 'delivered' and mined_again_in is null)`;

/** The least time lets SQLite use the index of queues that are not empty. */
function waitingIn(channels: Expression<unknown>) {
  return sql<number>`(select cast(coalesce(sum(tail - head + 1), 0) as bigint) from queues
    where channel in ${channels} and next_attempt_at >= 0)`;
}

/** The event at the head of a queue is due since then, or was first attempted then. */
function oldestIn(channels: Expression<unknown>) {
  return sql<number | null>`(select min(coalesce(first_attempted_at, next_attempt_at)) from queues
    where channel in ${channels} and next_attempt_at >= 0)`;
}

function lettersIn(channels: Expression<unknown>) {
  return sql<number>`(select count(*) from dead_letters where channel in ${channels})`;
}
