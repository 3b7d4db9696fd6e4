import { sql, type Kysely, type Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import type { ClaimedDelivery } from './claim-deliveries';

/** What came of an attempt, as it is recorded. */
export interface AttemptRecord {
  attemptedAt: number;
  milliseconds: number;
  status: number | undefined;
  /** Undefined for success. */
  error: string | undefined;
}

/** Records a successful attempt; the stream moves on to its next event, which is due at once. */
export async function completeDelivery(
  db: Kysely<Schema>,
  feed: string,
  delivery: ClaimedDelivery,
  attempt: AttemptRecord,
  now: number,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await recordAttempt(transaction, feed, delivery, attempt);
    await transaction
      .updateTable('deliveries')
      .set({ delivered_at: now })
      .where('stream', '=', delivery.stream)
      .where('position', '=', delivery.position)
      .execute();
    await transaction
      .updateTable('streams')
      .set((eb) => ({
        head: eb('head', '+', 1),
        attempts: 0,
        lease: null,
        next_attempt_at: sql<number | null>`case when head < tail then ${now} else null end`,
      }))
      .where('stream', '=', delivery.stream)
      .where('lease', '=', delivery.lease)
      .execute();
  });
}

/** Records a failed attempt; the stream waits until `nextAttemptAt` and everything behind its head with it. */
export async function failDelivery(
  db: Kysely<Schema>,
  feed: string,
  delivery: ClaimedDelivery,
  attempt: AttemptRecord,
  nextAttemptAt: number,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await recordAttempt(transaction, feed, delivery, attempt);
    await transaction
      .updateTable('streams')
      .set({ lease: null, next_attempt_at: nextAttemptAt })
      .where('stream', '=', delivery.stream)
      .where('lease', '=', delivery.lease)
      .execute();
  });
}

async function recordAttempt(
  db: Transaction<Schema>,
  feed: string,
  { eventId, attempt }: ClaimedDelivery,
  { attemptedAt, milliseconds, status, error }: AttemptRecord,
): Promise<void> {
  await db
    .insertInto('attempts')
    .values({
      feed,
      event_id: eventId,
      attempt,
      attempted_at: attemptedAt,
      status: status ?? null,
      error: error ?? null,
      milliseconds,
    })
    .execute();
}
