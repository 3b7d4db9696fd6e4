import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { changeVersionOf } from '../outbox/change-version';

/** A text that changes with every event and every change of a subscription. Both reads use a key. */
export async function movedSince(db: Kysely<Schema>): Promise<string> {
  const [last, version] = await Promise.all([
    db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst(),
    changeVersionOf(db),
  ]);
  return `${last?.id ?? 0} ${version}`;
}
