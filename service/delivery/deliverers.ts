import { sql, type Transaction } from 'kysely';
import { loggedOnce, type Logger } from '../base/logger';
import { repeat, untilAborted, within, type Time } from '../base/time';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/**
 * The processes that deliver a feed. Each works on the channels that it has a sink for, and they divide the
 * limit of each subscription between them, so that its sink never has more requests at once than it allows.
 */
export interface Deliverers {
  /** Takes part in the delivery of a feed. A second call changes nothing. */
  join(this: void, feed: string, deliveries: OwnDeliveries): Promise<void>;
  /** Call it when no delivery of the feed is under way any more. */
  leave(this: void, feed: string): Promise<void>;
  /** How many of the deliveries that a channel may have at once are this process's. */
  shareOf(this: void, feed: string, channel: number, limit: number): number;
}

/** The deliveries of a feed by this process. */
export interface OwnDeliveries {
  /** Whether those under way are within the shares, which may have become smaller. */
  fit(): boolean;
  /** The channels without a sink in this process: others divide all of their limit. */
  lacking: ReadonlySet<number>;
}

/** How often a process shows that it lives, and looks at the others. */
const LOOK_EVERY_MS = 1_000;
/** A process that has not looked for so long sends nothing more. */
const QUIET_AFTER_MS = 2_500;
/** A process that was not seen for so long has no share any more: it sent its last request well before. */
const GONE_AFTER_MS = 4_000;
/** A process that hangs while it looks lets the others wait for so long. */
const LOOK_WITHIN_MS = 2_000;
/** The stop of the service has ten seconds, and the last deliveries take eight. */
const LEAVE_WITHIN_MS = 500;
/** The lock of the table, which also holds off processes whose rows do not exist yet. */
const LOCK = 0x64656c6976;

/** The processes that divide the limits of a feed's channels, in the order of their ids. */
interface Division {
  members: readonly { process: string; lacking: ReadonlySet<number> }[];
  /** Equal for equal divisions. */
  text: string;
}

/** Nobody has a share. */
const NONE: Division = { members: [], text: '' };

/** The part of this process in a feed. */
interface Part {
  deliveries: OwnDeliveries;
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
 * they go by it alone. One process looks at a time: one that hung, was taken for gone, and goes on therefore
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
  let begunAt = -Infinity;
  const isQuiet = (): boolean => time.elapsed() - lookedAt > QUIET_AFTER_MS;

  /** Returns the parts whose division all have agreed on. */
  async function lookAt(
    looked: ReadonlyMap<string, Part>,
    transaction: Transaction<Schema>,
  ): Promise<{ part: Part; division: Division }[]> {
    const stored = await lockedRows(transaction, id, looked);
    // The wait for a connection and for the lock does not count: the row is seen after this.
    begunAt = time.elapsed();
    const looks = [...looked].map(([feed, part]) => {
      const rows = stored.filter((row) => row.feed === feed);
      const own = rows.find(({ process }) => process === id);
      // If its own row looks old too, it may be the clock of the database that was changed.
      const others = rows.filter((row) => row.process !== id && (own?.isGone || !row.isGone));
      // Others that divide without this process have removed its row.
      if (own === undefined) part.divisions = [NONE];
      const lacking = JSON.stringify([...part.deliveries.lacking]);
      const division = divisionOf([...others, { process: id, lacking }]);
      if (part.divisions.at(-1)?.text !== division.text) part.divisions = [...part.divisions, division];
      const divides_with = part.divisions.length === 1 || part.deliveries.fit() ? division.text : '';
      const row = { feed, process: id, lacking, divides_with, seen_at: NOW };
      const isAgreed = [row, ...others].every((one) => one.divides_with === division.text);
      return { part, division, others, isAgreed, row };
    });
    const others = new Set(looks.flatMap((look) => look.others));
    const old = stored.filter((row) => !others.has(row));
    const [feeds, processes] = [old.map(({ feed }) => feed), old.map(({ process }) => process)];
    await sql`delete from deliverers where (feed, process) in
      (select * from unnest(${feeds}::text[], ${processes}::text[]))`.execute(transaction);
    const rows = looks.map(({ row }) => row);
    if (rows.length > 0) await transaction.insertInto('deliverers').values(rows).execute();
    return looks.filter(({ isAgreed }) => isAgreed);
  }

  let last = Promise.resolve();
  /** A look that has not begun. */
  let next: Promise<void> | undefined;
  const lookOnce = loggedOnce(logger, 'the shares of deliveries cannot be renewed', async () => {
    next = undefined;
    const looked = new Map(parts);
    const agreed = await db.transaction().execute((transaction) => lookAt(looked, transaction));
    for (const { part, division } of agreed) part.divisions = [division];
    lookedAt = begunAt;
  });

  /** Looks after the look under way. Those who ask meanwhile share it. */
  function look(): Promise<void> {
    if (next === undefined) last = next = last.then(lookOnce);
    return next;
  }

  let looking: { stop(): Promise<void> } | undefined;
  return {
    async join(feed, deliveries) {
      if (!parts.has(feed)) parts.set(feed, { deliveries, divisions: [NONE] });
      await look();
      looking ??= repeat(time, look, LOOK_EVERY_MS, LOOK_EVERY_MS);
    },
    async leave(feed) {
      parts.delete(feed);
      if (parts.size === 0) {
        void looking?.stop();
        looking = undefined;
      }
      // The others soon take a process for gone that could not tell them.
      await within(time, LEAVE_WITHIN_MS, (late) => untilAborted(late, look())).catch(() => undefined);
    },
    shareOf(feed, channel, limit) {
      const { divisions } = (isQuiet() ? undefined : parts.get(feed)) ?? { divisions: [NONE] };
      return Math.min(...divisions.map((division) => shareIn(division, id, channel, limit)));
    },
  };
}

/** A row of the table. `isGone`: its process was not seen for long, or was seen in the future. */
type Row = Omit<Schema['deliverers'], 'seen_at'> & { isGone: boolean };

function divisionOf(rows: readonly Pick<Row, 'process' | 'lacking'>[]): Division {
  const sorted = [...rows].sort((one, other) => (one.process < other.process ? -1 : 1));
  return {
    members: sorted.map((row) => ({ ...row, lacking: new Set(JSON.parse(row.lacking) as number[]) })),
    text: JSON.stringify(sorted.map(({ process, lacking }) => [process, lacking])),
  };
}

/** Processes get equal shares; which of them get one more differs between channels. */
function shareIn({ members }: Division, id: string, channel: number, limit: number): number {
  const able = members.filter(({ lacking }) => !lacking.has(channel));
  const index = able.findIndex(({ process }) => process === id);
  if (index === -1) return 0;
  const place = (index + channel) % able.length;
  return Math.floor((limit + able.length - 1 - place) / able.length);
}

/** By the clock of the database, which all processes share. */
const NOW = sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;

/** The rows of these feeds, and all of this process. Until the transaction ends, no other process looks. */
async function lockedRows(
  db: Transaction<Schema>,
  id: string,
  feeds: ReadonlyMap<string, Part>,
): Promise<Row[]> {
  // The settings end with the transaction. The first also limits the wait for the lock.
  await sql`select set_config('statement_timeout', ${String(LOOK_WITHIN_MS)}, true),
    set_config('idle_in_transaction_session_timeout', ${String(LOOK_WITHIN_MS)}, true)`.execute(db);
  await sql`select pg_advisory_xact_lock(${LOCK})`.execute(db);
  return db
    .selectFrom('deliverers')
    .select(['feed', 'process', 'lacking', 'divides_with'])
    .select(sql<boolean>`abs(${NOW} - seen_at) > ${GONE_AFTER_MS}`.as('isGone'))
    .where((eb) => eb.or([eb('process', '=', id), eb('feed', '=', sql<string>`any(${[...feeds.keys()]})`)]))
    .execute();
}
