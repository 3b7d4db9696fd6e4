import type { Kysely, Transaction } from 'kysely';
import { inBatches } from '../database/batches';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { CloudEvent } from '../events/cloud-event';
import { compileRules, type EventRules } from '../events/select-events';
import { SelectionIndex } from '../events/selection-index';
import { changesSince, lockVersion, NO_VERSION } from './changes';
import { joinedChannels } from './channels';

/** The channels of a feed that events may be recorded for. */
export interface Recipients {
  /** The rules of each channel, by its key. */
  rules: ReadonlyMap<number, EventRules>;
  /**
   * The channels whose stored events are still being enqueued. New events are not enqueued for them: they
   * wait behind those.
   */
  filling: ReadonlySet<number>;
  /** The channels that an event is enqueued for when it is recorded. */
  channelsFor(event: CloudEvent): number[];
}

/** The settings select no events. */
const WANTS_ALL = compileRules('{"config": {"startFrom": "beginning", "retractions": false}}');

/** The rules of a feed's channels. They are read once, and then only those that change. */
class FeedRules {
  version = NO_VERSION;
  readonly byChannel = new Map<number, EventRules>();
  readonly index = new SelectionIndex();
  readonly #channels = new Map<string, number>();

  /** Brings the rules to a version that no transaction can change meanwhile. */
  async update(db: Transaction<Schema>, feed: number, version: number): Promise<void> {
    const { subjects } = await changesSince(db, this.version, version);
    const changed = await readChannels(db, feed, subjects);
    for (const name of subjects ?? this.#channels.keys()) this.#remove(name);
    for (const { id, name, definition } of changed) {
      const rules = definition === null ? WANTS_ALL : compileRules(definition);
      this.#channels.set(name, id);
      this.byChannel.set(id, rules);
      this.index.set(id, rules.selection);
    }
    this.version = version;
  }

  #remove(name: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    this.#channels.delete(name);
    this.byChannel.delete(channel);
    this.index.delete(channel);
  }
}

const rulesOf = new WeakMap<Kysely<Schema>, Map<number, FeedRules>>();

/** Reads the channels of these subscriptions, or of all. */
function readChannels(db: Transaction<Schema>, feed: number, names: ReadonlySet<string> | undefined) {
  const ofFeed = joinedChannels(db)
    .select(['channels.id', 'subscriptions.name', 'subscriptions.definition'])
    .where('channels.feed', '=', feed);
  if (names === undefined) return ofFeed.execute();
  return inBatches([...names], (some) => ofFeed.where('subscriptions.name', 'in', some).execute());
}

const fillingChannels = compiled((db, { feed }: { feed: number }) =>
  db.selectFrom('channels').select('id').where('feed', '=', feed).where('fill_block', 'is not', null),
);

/**
 * The channels of a feed with the rules that hold at the end of the transaction: until then no subscription
 * can be changed. The cost does not grow with the number of subscriptions, but with those that have changed.
 */
export async function recipientsOf(
  { db }: Pick<Database, 'db'>,
  transaction: Transaction<Schema>,
  feed: number,
): Promise<Recipients> {
  const version = await lockVersion(transaction);
  const byFeed = rulesOf.get(db) ?? new Map<number, FeedRules>();
  const rules = byFeed.get(feed) ?? new FeedRules();
  rulesOf.set(db, byFeed.set(feed, rules));
  if (rules.version !== version) await rules.update(transaction, feed, version);
  // The end of a channel's filling is no change of its subscription.
  const { rows } = await fillingChannels(transaction, { feed });
  const filling = new Set(rows.map(({ id }) => id));
  return {
    rules: rules.byChannel,
    filling,
    channelsFor: (event) =>
      [...rules.index.candidates(event)].filter(
        (channel) => !filling.has(channel) && rules.byChannel.get(channel)?.wants(event),
      ),
  };
}
