import { expect } from 'chai';
import type { KyselyPlugin } from 'kysely';
import { systemClock } from '../../service/base/clock';
import type { Database } from '../../service/database/database';
import { setHeld } from '../../service/outbox/feeds';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { eventually } from '../helpers/eventually';
import { startWorker } from '../helpers/database/running-worker';
import { eventIn, record } from '../helpers/database/sample-feed';

describe('a worker whose feed is held', () => {
  // SQLite has one connection, where a claim is answered before the hold is written.
  const outbox = emptyOutbox('PostgreSQL');

  it('gives deliveries back whose claim is answered after a hold, and sends them after release', async () => {
    const { database, feed } = outbox;
    const events = [1n, 2n, 3n].map((token) => eventIn(1, token));
    await record(database, feed, 1, events, systemClock.now());
    let answer: (() => void) | undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    let [isClaimed, isDelayed] = [false, true];
    // The database has executed the statements, and its answers are delayed.
    const delay: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        isClaimed ||= result.rows.some((row) => 'body' in row);
        if (isClaimed && isDelayed) await answered;
        return result;
      },
    };
    const db = database.db.withPlugin(delay);
    const sent: string[] = [];
    const delayed: Database = { ...database, db, transact: (work) => db.transaction().execute(work) };
    const worker = startWorker(delayed, outbox.channel, (body) => (sent.push(body), 200));
    try {
      await eventually('it has claimed', () => isClaimed);
      await setHeld(database.db, feed, 1);
      worker.hold();
      isDelayed = false;
      answer?.();
      await eventually('it is given back', async () => {
        const leased = await database.db
          .selectFrom('queues')
          .select('token')
          .where('lease', 'is not', null)
          .execute();
        return leased.length === 0;
      });
      expect(sent).to.deep.equal([]);
      await setHeld(database.db, feed, 0);
      worker.wake();
      await eventually('all are sent', () => sent.length === events.length);
    } finally {
      await worker.stop();
    }
  });
});
