import { sql, type Insertable, type Transaction } from 'kysely';
import { inBatches } from '../database/batches';
import type { Database } from '../database/database';
import { compiled } from '../database/compiled';
import type { AttemptsTable, Schema } from '../database/schema';
import { holdChanges } from './changes';
import { isChanged, stopChannel } from './channels';
import { claimQueues, unclaimed, type Attempted, type Claim, type ClaimedQueue } from './claim-queues';
import { tellOfChannel } from './conditions';

/** The outcome of a claimed queue. If nothing was attempted, the claim does not count. */
export interface Settlement {
  queue: ClaimedQueue;
  /** The first events of the queue, which were delivered. */
  delivered: readonly Attempted[];
  /**
   * The event after the delivered ones, if its attempt failed. `nextAttemptAt`: undefined if it is given up.
   * `isGone`: the receiver wants no more events, and the channel is stopped.
   */
  failed?: Attempted & { nextAttemptAt: number | undefined; isGone?: boolean };
}

/** A subscription as the sender of its events knew it. */
export interface SentTo {
  /** When the subscription was changed last. */
  changedAt: number;
  /** SHA-256 of its sink. */
  sinkHash: string;
}

/**
 * Records attempts and advances their token queues. Many are settled in one transaction: a commit is a disk
 * write, and would be most of a single delivery's cost. A queue that another process has claimed meanwhile is
 * left to it.
 *
 * @returns the settlements of queues that another process has claimed, and whether a settled queue is due.
 */
async function settleQueues(
  db: Transaction<Schema>,
  channel: number,
  settlements: readonly Settlement[],
  { now, sentTo }: { now: number; sentTo: SentTo | undefined },
): Promise<{ lost: Settlement[]; areDue: boolean }> {
  // Before queues are locked: any other order could deadlock.
  if (settlements.some(({ failed }) => failed && failed.nextAttemptAt === undefined)) await holdChanges(db);
  const isGone =
    settlements.some(({ failed }) => failed?.isGone) && (await stopChannel(db, channel, sentTo?.changedAt));
  await recordAttempts(db, channel, settlements);
  const { rows } = await leasesOf(db, { channel, tokens: settlements.map(({ queue }) => queue.token) });
  const leases = new Map(rows.map(({ token, lease }) => [token, lease]));
  const isMine = ({ queue }: Settlement): boolean => leases.get(queue.token) === queue.lease;
  const mine = settlements.filter(isMine);
  const hasFailed = settlements.some(({ failed }) => failed);
  // An answer of a former sink says nothing of the present one.
  const isOutdated = hasFailed && sentTo !== undefined && (await isChanged(db, channel, sentTo.changedAt));
  const letters = mine.flatMap(({ failed }) => (failed && failed.nextAttemptAt === undefined ? failed : []));
  let areDue = await moveOn(db, channel, mine, now);
  const unsent = mine.filter(({ delivered, failed }) => !failed && delivered.length === 0);
  if (unsent.length > 0) {
    await release(db, { channel, tokens: unsent.map(({ queue }) => queue.token), now });
    areDue = true;
  }
  for (const { queue, delivered, failed } of mine) {
    if (failed?.nextAttemptAt === undefined) continue;
    const dueAt = isOutdated ? now : failed.nextAttemptAt;
    await postpone(db, queue, delivered.length, failed, dueAt);
    areDue ||= dueAt <= now;
  }
  for (const { delivery } of letters)
    await sql`insert into dead_letters (channel, event, died_at, attempts)
      values (${channel}, ${delivery.event}, ${now}, ${delivery.attempt}) on conflict do nothing`.execute(db);
  await tellOfChannel(db, channel, { isGone, letters }, now);
  const isFailing = rows.some(({ failingSince }) => failingSince !== null);
  await noteHealth(db, channel, settlements, { sentTo, isFailing });
  return { lost: settlements.filter((settled) => !isMine(settled)), areDue };
}

async function recordAttempts(
  db: Transaction<Schema>,
  channel: number,
  settlements: readonly Settlement[],
): Promise<void> {
  const rows = settlements.flatMap(({ delivered, failed }) =>
    [...delivered, ...(failed ? [failed] : [])].map(({ delivery, attempt }) => ({
      event: delivery.event,
      channel,
      attempt: delivery.attempt,
      attempted_at: attempt.attemptedAt,
      status: attempt.status ?? null,
      error: attempt.error ?? null,
      milliseconds: attempt.milliseconds,
    })),
  );
  await inBatches(rows, async (some) => (await addAttempts(db, { rows: some })).rows);
}

const addAttempts = compiled((db, { rows }: { rows: Insertable<AttemptsTable>[] }) =>
  db.insertInto('attempts').values(rows),
);

/**
 * Reads the present lease of each queue, and since when the channel fails. Queues are locked in the order of
 * their keys, as in stored-events.ts: any other order could deadlock.
 */
const leasesOf = compiled((db, { channel, tokens }: { channel: number; tokens: number[] }, engine) =>
  db
    .selectFrom('queues')
    .select(['token', 'lease'])
    .select((eb) =>
      eb.selectFrom('channels').select('failing_since').where('id', '=', channel).as('failingSince'),
    )
    .where('channel', '=', channel)
    .where('token', 'in', tokens)
    .orderBy('token')
    .$if(engine === 'postgres', (query) => query.forUpdate()),
);

/**
 * Advances the queues past the events that are over; the next event of each falls due at once.
 *
 * @returns whether a queue has a next event.
 */
async function moveOn(
  db: Transaction<Schema>,
  channel: number,
  settlements: readonly Settlement[],
  now: number,
): Promise<boolean> {
  const byCount = new Map<number, number[]>();
  for (const { queue, delivered, failed } of settlements) {
    // An event that is given up is not tried again either.
    const over = delivered.length + (failed ? 1 : 0);
    if (over > 0 && failed?.nextAttemptAt === undefined)
      byCount.set(over, [...(byCount.get(over) ?? []), queue.token]);
  }
  let areDue = false;
  for (const [count, tokens] of byCount) {
    const { rows } = await advance(db, { channel, count, tokens, now });
    areDue ||= rows.some(({ next_attempt_at }) => next_attempt_at !== null);
  }
  return areDue;
}

const advance = compiled(
  (db, { channel, count, tokens, now }: { channel: number; count: number; tokens: number[]; now: number }) =>
    db
      .updateTable('queues')
      .set((eb) => ({
        head: eb('head', '+', count),
        attempts: 0,
        first_attempted_at: null,
        lease: null,
        claimed_to: null,
        next_attempt_at: sql<
          number | null
        >`case when head + ${count} <= tail then cast(${now} as bigint) end`,
      }))
      .where('channel', '=', channel)
      .where('token', 'in', tokens)
      .returning('next_attempt_at'),
);

/** Releases queues from which nothing was sent. */
const release = compiled((db, { channel, tokens, now }: { channel: number; tokens: number[]; now: number }) =>
  db
    .updateTable('queues')
    .set((eb) => unclaimed(eb, now))
    .where('channel', '=', channel)
    .where('token', 'in', tokens),
);

/**
 * Advances a queue past what was delivered and schedules the next attempt of the event that failed. The
 * events behind it wait too.
 */
async function postpone(
  db: Transaction<Schema>,
  { channel, token }: ClaimedQueue,
  delivered: number,
  { delivery, attempt }: Attempted,
  dueAt: number,
): Promise<void> {
  const first = delivery.attempt === 1 ? attempt.attemptedAt : null;
  await sql`update queues
    set head = head + ${delivered}, attempts = ${delivery.attempt}, lease = null, claimed_to = null,
      next_attempt_at = ${dueAt}, first_attempted_at = coalesce(${first}, first_attempted_at)
    where channel = ${channel} and token = ${token}`.execute(db);
}

/**
 * Stores the time of the first failure since the last success. It is written only when it changes: a time
 * that lies ahead is of a clock that was set back.
 */
async function noteHealth(
  db: Transaction<Schema>,
  channel: number,
  settlements: readonly Settlement[],
  { sentTo, isFailing }: { sentTo: SentTo | undefined; isFailing: boolean },
): Promise<void> {
  const hasDelivered = settlements.some(({ delivered }) => delivered.length > 0);
  const firstFailure = settlements.find(({ failed }) => failed)?.failed?.attempt.attemptedAt;
  if (hasDelivered && isFailing)
    await db.updateTable('channels').set({ failing_since: null }).where('id', '=', channel).execute();
  if (!hasDelivered && firstFailure !== undefined)
    await sql`update channels
      set failing_since = ${firstFailure}, sink_hash = coalesce(${sentTo?.sinkHash ?? null}, sink_hash)
      where id = ${channel} and (failing_since is null or failing_since > ${firstFailure})`.execute(db);
}

/** The outcomes to record and the queues to claim. */
interface Turn {
  settlements: readonly Settlement[];
  /** A limit of 0 claims nothing. */
  claim: Claim;
  /** Whether a queue may be due besides those of the settlements. */
  mayBeDue: boolean;
  /** The subscription as the sender knew it: when it was changed last, and the SHA-256 of its sink. */
  sentTo?: SentTo;
}

/**
 * Records outcomes and claims the next queues in one transaction, which channels share. It takes one disk
 * write, and a token's next events are claimed in the transaction that settles the previous ones.
 *
 * @returns the claimed queues, those that another process has claimed, and whether more queues may be due.
 */
export async function takeTurn(
  database: Database,
  { settlements, claim, mayBeDue, sentTo }: Turn,
): Promise<{ claimed: ClaimedQueue[]; lost: Settlement[]; mayBeDue: boolean }> {
  return database.transact(async (transaction) => {
    const { channel, limit, now } = claim;
    const { lost, areDue } =
      settlements.length === 0
        ? { lost: [], areDue: false }
        : await settleQueues(transaction, channel, settlements, { now, sentTo });
    if (limit === 0 || !(mayBeDue || areDue)) return { claimed: [], lost, mayBeDue: mayBeDue || areDue };
    const claimed = await claimQueues(transaction, claim);
    return { claimed, lost, mayBeDue: claimed.length === limit };
  });
}
