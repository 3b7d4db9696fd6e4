import { expect } from 'chai';
import type { Schema } from '../../service/database/schema';
import { toCloudEvent, type CloudEvent } from '../../service/events/cloud-event';
import { compileRules } from '../../service/events/select-events';
import { readStream, readStreams, type StreamPage } from '../../service/outbox/event-stream';
import { openFeed } from '../../service/outbox/feeds';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import { readCursors } from '../../service/outbox/stream-cursor';
import { bytesOfId } from '../../service/outbox/stored-events';
import { migratedTo } from '../helpers/database/earlier-outbox';
import { ENGINES, newState, openState, type State } from '../helpers/database/engines';
import { eventIn, hashOf, record, SAMPLE_FEED, SAMPLE_REGISTRY } from '../helpers/database/sample-feed';

const FEED = 1;
const DELIVERED_ORPHAN = eventIn(4, 7n);

/** Stores events of token 7 as the version before the stream did. Times are in the order of the blocks. */
async function fill(state: State): Promise<void> {
  const db = await migratedTo<Schema>('0018-traces', state);
  const row = { feed: SAMPLE_FEED, next_block: 5, last_block_hash: hashOf(3), epoch: 1 };
  await db.insertInto('feeds').values(row).execute();
  await db
    .insertInto('blocks')
    .values({ feed: FEED, number: 3, hash: hashOf(3) })
    .execute();
  await db.insertInto('tokens').values({ feed: FEED, token_id: '7' }).execute();
  // The events of blocks 1 and 2 were restored after that of block 3.
  const stored = [eventIn(3, 7n), DELIVERED_ORPHAN, eventIn(1, 7n), eventIn(2, 7n)];
  for (const event of stored) {
    const cloudEvent = toCloudEvent(event, SAMPLE_REGISTRY);
    const values = {
      feed: FEED,
      token: 1,
      event_id: bytesOfId(cloudEvent.id),
      type: cloudEvent.type,
      block_number: event.blockNumber,
      block_hash: event.blockHash,
      log_index: event.blockLogIndex,
      body: JSON.stringify(cloudEvent),
      recorded_at: event.blockNumber * 1_000,
      orphaned_at: event === DELIVERED_ORPHAN ? 9_000 : null,
    };
    await db.insertInto('events').values(values).execute();
  }
  await db.destroy();
}

describe('the stream of a database of before migration 0019', () => {
  for (const engine of ENGINES)
    it(`is in the order of time, with orphans that are mined again, on ${engine}`, async function () {
      await using state = await newState(engine);
      if (state === undefined) return this.skip();
      await fill(state);
      await using database = await openState(state);
      const { db } = database;
      const cursors = await readCursors(db);
      const fetched = async (after: string | undefined, retractions: boolean): Promise<StreamPage> => {
        const rules = compileRules(JSON.stringify({ config: { startFrom: 'beginning', retractions } }));
        return readStream(db, cursors, await readStreams(db), { after, limit: 100, rules });
      };
      const blocksIn = ({ events }: StreamPage): (number | string)[] =>
        events.map(({ body }) => (JSON.parse(body) as CloudEvent).data.blockNumber ?? 'retracted');

      const before = await fetched(undefined, true);
      expect(blocksIn(before)).to.deep.equal([1, 2, 3]);
      const feed = await openFeed(db, SAMPLE_FEED, 5, 10_000);
      const { transactionHash } = DELIVERED_ORPHAN;
      const again = [eventIn(5, 7n), eventIn(6, 7n, { transactionHash }), eventIn(7, 7n)];
      await record(database, feed, 7, again, 10_000);
      for (const retractions of [true, false])
        expect(blocksIn(await fetched(before.cursor, retractions))).to.deep.equal([5, 6, 7]);
      const last = await fetched(before.cursor, true);
      await rewindFeed(database, feed, { number: 5, hash: hashOf(5) }, 11_000);
      expect(blocksIn(await fetched(last.cursor, true))).to.deep.equal(['retracted', 'retracted']);
    });
});
