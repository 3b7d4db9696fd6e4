import { sql, type Transaction } from 'kysely';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { repeat, type Time } from '../base/time';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/**
 * The processes that deliver a feed. Each works on all of its channels, and they divide the limit of each
 * subscription between them, so that its sink never has more requests at once than it allows.
 */
export interface Deliverers {
  /**
   * Takes part in the delivery of a feed.
   *
   * @param fits whether the deliveries under way are within the shares.
   */
  join(this: void, feed: string, fits: () => boolean): Promise<void>;
  /** Call it when no delivery of the feed is under way any more. */
  leave(this: void, feed: string): Promise<void>;
  /** How many of the deliveries that a channel may have at once are this process's. */
  shareOf(this: void, feed: string, channel: number, limit: number): number;
}

/** How often a process shows that it lives, and looks at the others. */
const LOOK_EVERY_MS = 1_000;
/** A process that has not looked for so long sends nothing more. */
const QUIET_AFTER_MS = 2_500;
/** A process that was not seen for so long has no share any more. */
const GONE_AFTER_MS = 10_000;

/** The processes that divide the limits of a feed's channels: their ids in order. */
type Division = readonly string[];

/** Nobody has a share. */
const NONE: Division = [];

/** The part of this process in a feed. */
interface Part {
  fits: () => boolean;
  /** The division that all agreed on last, and later ones, which some may go by. A share is within each. */
  divisions: readonly Division[];
}

/** A process that has the database for itself has the whole limits. */
const ALONE: Deliverers = {
  join: async () => undefined,
  leave: async () => undefined,
  shareOf: (_feed, _channel, limit) => limit,
};

/**
 * Divides limits with the processes that share the database.
 *
 * A process that sees others come or go keeps within the former division and the new one. When its deliveries
 * under way are within the new one, it stores that (`divides_with`). When all have stored the same division,
 * they go by it alone. A look locks the rows: a process that hung, was taken for gone, and goes on therefore
 * sees that the others divide without it.
 *
 * @param id of this process.
 */
export function createDeliverers(
  { db, engine }: Pick<Database, 'db' | 'engine'>,
  { id, time, logger }: { id: string; time: Time; logger: Logger },
): Deliverers {
  if (engine === 'sqlite') return ALONE;
  const parts = new Map<string, Part>();
  let lookedAt = -Infinity;
  const isQuiet = (): boolean => time.elapsed() - lookedAt > QUIET_AFTER_MS;

  async function look(): Promise<void> {
    if (parts.size === 0) return;
    const startedAt = time.elapsed();
    // The others may have gone on without this process.
    if (isQuiet()) for (const part of parts.values()) part.divisions = [NONE];
    const agreed = await db.transaction().execute(async (transaction) => {
      const others = await othersIn(transaction, id, [...parts.keys()]);
      const looks = [...parts].map(([feed, part]) => {
        const rows = others.filter((row) => row.feed === feed);
        const division = [id, ...rows.map(({ process }) => process)].sort();
        const text = JSON.stringify(division);
        if (JSON.stringify(part.divisions.at(-1)) !== text) part.divisions = [...part.divisions, division];
        const stored = part.divisions.length === 1 || part.fits() ? text : '';
        return { feed, part, division, stored, isAgreed: rows.every((row) => row.divides_with === text) };
      });
      await storeOwn(
        transaction,
        looks.map(({ feed, stored }) => ({ feed, process: id, divides_with: stored, seen_at: NOW })),
      );
      return looks.filter(({ stored, isAgreed }) => stored !== '' && isAgreed);
    });
    for (const { part, division } of agreed) part.divisions = [division];
    lookedAt = startedAt;
  }

  let isFailing = false;
  async function lookAgain(): Promise<void> {
    try {
      await look();
      isFailing = false;
    } catch (error) {
      if (!isFailing) logger.warn({ error }, `deliveries pause: the database fails: ${messageOf(error)}`);
      isFailing = true;
    }
  }

  let looking: { stop(): Promise<void> } | undefined;
  return {
    async join(feed, fits) {
      parts.set(feed, { fits, divisions: [NONE] });
      await look();
      looking ??= repeat(time, lookAgain, LOOK_EVERY_MS, LOOK_EVERY_MS);
    },
    async leave(feed) {
      parts.delete(feed);
      if (parts.size === 0) {
        await looking?.stop();
        looking = undefined;
      }
      const own = db.deleteFrom('deliverers').where('feed', '=', feed).where('process', '=', id);
      // The others soon take a process for gone that could not tell them.
      await own.execute().catch(() => undefined);
    },
    shareOf(feed, channel, limit) {
      const { divisions = [NONE] } = parts.get(feed) ?? {};
      if (isQuiet()) return 0;
      return Math.min(...divisions.map((division) => shareIn(division, id, channel, limit)));
    },
  };
}

/** Processes get equal shares; which of them get one more differs between channels. */
function shareIn(division: Division, id: string, channel: number, limit: number): number {
  const place = (division.indexOf(id) + channel) % division.length;
  return division.length === 0 ? 0 : Math.floor((limit + division.length - 1 - place) / division.length);
}

/** By the clock of the database, which all processes share. */
const NOW = sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;
const GONE_BEFORE = sql<number>`${NOW} - ${GONE_AFTER_MS}`;

/**
 * The rows of the other processes, without those that are gone, which are removed. All rows are locked in one
 * order, so that looks do not deadlock.
 */
async function othersIn(
  db: Transaction<Schema>,
  id: string,
  feeds: readonly string[],
): Promise<{ feed: string; process: string; divides_with: string }[]> {
  const rows = await db
    .selectFrom('deliverers')
    .select(['feed', 'process', 'divides_with'])
    .select((eb) => eb('seen_at', '<', GONE_BEFORE).as('isGone'))
    .where('feed', 'in', feeds)
    .orderBy('feed')
    .orderBy('process')
    .forUpdate()
    .execute();
  const others = rows.filter(({ process }) => process !== id);
  for (const { feed, process } of others.filter(({ isGone }) => isGone))
    await db.deleteFrom('deliverers').where('feed', '=', feed).where('process', '=', process).execute();
  return others.filter(({ isGone }) => !isGone);
}

async function storeOwn(
  db: Transaction<Schema>,
  rows: { feed: string; process: string; divides_with: string; seen_at: typeof NOW }[],
): Promise<void> {
  await db
    .insertInto('deliverers')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['feed', 'process']).doUpdateSet((eb) => ({
        divides_with: eb.ref('excluded.divides_with'),
        seen_at: eb.ref('excluded.seen_at'),
      })),
    )
    .execute();
}
