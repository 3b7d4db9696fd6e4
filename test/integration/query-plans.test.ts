import { join } from 'node:path';
import { expect } from 'chai';
import Sqlite from 'libsql';
import type { Database } from '../../service/database/database';
import { createLifecycle } from '../../service/base/lifecycle';
import { systemTime } from '../../service/base/time';
import { findNetwork } from '../../service/chain/networks';
import { issuingProgress } from '../../service/answers/answers';
import { eventDetails } from '../../service/answers/delivery-views';
import { createDatabaseJournal } from '../../service/journal/journal';
import { mintFiguresOf } from '../../service/journal/read-issuances';
import { createLogger } from '../../service/base/logger';
import { ContradictionCheck } from '../../service/observability/contradictions';
import { unfollowedOf } from '../../service/observability/unfollowed';
import { DEFAULT_SUBSCRIPTION } from '../../service/outbox/channels';
import { conditionsOfChannels } from '../../service/outbox/conditions';
import { movedSince } from '../../service/outbox/changes';
import { deliveriesOfEvent, listDeliveries, listEvents } from '../../service/outbox/deliveries';
import { outboxFiguresOf } from '../../service/outbox/outbox-figures';
import { purgeEvents } from '../../service/outbox/purge-events';
import { newState, openState, type State } from '../helpers/database/engines';
import { stopLater } from '../helpers/resources';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';
import {
  eventIn,
  openSampleFeed,
  record,
  SAMPLE_FEED,
  SAMPLE_REGISTRY,
} from '../helpers/database/sample-feed';

/** A step of SQLite's query plan, such as `SEARCH events USING INDEX events_by_block (feed=?)`. */
interface Plan {
  detail: string;
}

/**
 * Steps over few rows: a registry has a feed, a feed has some channels and keeps some blocks, and a token has
 * some events.
 */
const FEW_ROWS = [
  /^SCAN (feeds|registries|subscriptions)$|^USE TEMP B-TREE FOR (ORDER BY|DISTINCT)$/,
  /INDEX sqlite_autoindex_(blocks|channels|journal_chains)_1 \((feed|scope)=\?\)/,
  /INDEX events_by_token \(token=\?\)$/,
];

/**
 * Whether the cost of a step is independent of the number of stored rows: it uses a key, a partial index of
 * few rows, or the end of an index.
 */
function isShort({ detail }: Plan, text: string): boolean {
  const found = SHORT_IN.find(({ step }) => step.test(detail));
  return found ? found.statements.test(text) : SHORT_WAYS.some((way) => way.test(detail));
}

/** Steps that are short in some statements only. */
const SHORT_IN = [
  {
    step: /INDEX (issuances|mint_transactions)_position \(/,
    statements: /order by "position" desc limit \?/,
  },
  // Few mints are unfinished, or not final yet; a block may have any number of events.
  { step: /FOR RIGHT PART OF ORDER BY/, statements: /from "issuances"/ },
  // The changes since a process looked last.
  { step: /INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/, statements: /from "subscription_change_log"/ },
  // The newest events.
  {
    step: /^SCAN events$|^SEARCH events USING INTEGER PRIMARY KEY \(rowid<\?\)$/,
    statements: /order by ("events"\.)?"id" desc limit \?$/,
  },
  {
    step: /^SEARCH dead_letters USING PRIMARY KEY \(channel=\?\)$/,
    statements: /exists \(select/,
  },
];

const SHORT_WAYS = [
  /INDEX (events_orphaned|channels_filling|issuances_unfinished|sqlite_autoindex_orphans_1) /,
  /INDEX sqlite_autoindex_feeds_1 \(|INTEGER PRIMARY KEY \(rowid=\?\)$|INDEX attempts_of_event \(/,
  /\(.*=\? AND .*[=<>]\?\)/,
];

/** Subscriptions are few, and so are dead letters: each of them waits for somebody. */
const DEAD_LETTERS = /^SEARCH dead_letters USING PRIMARY KEY \(channel[=>]\?\)$/;

describe('the SQLite queries', () => {
  let state: State;
  let database: Database;
  const statements = new Set<string>();
  type Prepare = (this: unknown, text: string) => Sqlite.Statement;
  const prepare = Reflect.get(Sqlite.prototype, 'prepare') as Prepare;

  before(async () => {
    state = (await newState('SQLite'))!;
    database = await openState(state);
    Reflect.set(Sqlite.prototype, 'prepare', function (this: unknown, text: string) {
      statements.add(text);
      return prepare.call(this, text);
    });
    stopLater('collecting statements', () => Reflect.set(Sqlite.prototype, 'prepare', prepare));
  });

  it('read no older rows for a document or a range of blocks', async () => {
    const feed = await openSampleFeed(database);
    statements.clear();
    await record(database, feed, 3, [eventIn(1, 1n), eventIn(3, 2n)], 0);
    const journal = createDatabaseJournal(database, SCOPE, systemTime);
    const prepared = preparedDocument(600_000);
    const { tokenId } = prepared;
    await journal.add(prepared, { key: 'once', requestHash: 'ab' });
    await journal.keepTransactions([{ tokenId, hash: '0x01', nonce: 1, raw: '0x02', signedAt: 0 }]);
    await journal.submitted([tokenId]);
    await mintFiguresOf(database.db, SCOPE);
    await journal.unfinished();
    await journal.mined(tokenId, mintedBy('0x01'), false);
    await journal.final([tokenId]);
    await journal.signed();
    await journal.highestFinal();
    await journal.finalSince(1);
    await journal.findByKey('once');
    expect(longWays(FEW_ROWS, 10)).to.deep.equal([]);
  });

  it('read no older rows for a comparison of journal and watcher', async () => {
    const scope = { ...SCOPE, registryAddress: SAMPLE_REGISTRY.registryAddress };
    const journal = createDatabaseJournal(database, scope, systemTime);
    await journal.add(preparedDocument(10));
    const mined = preparedDocument(10);
    await journal.add(mined);
    await journal.enterChain(`0x${SAMPLE_FEED.split(':')[2]}`);
    await journal.mined(mined.tokenId, mintedBy('0x03', 1), false);
    statements.clear();
    const lifecycle = createLifecycle();
    const check = new ContradictionCheck({
      database,
      scope,
      registry: { network: findNetwork('31337')!, confirmations: 0, startBlock: undefined },
      time: systemTime,
      logger: createLogger({ level: 'silent', mask: (text) => text }),
      lifecycle,
      readAgain: () => undefined,
    });
    await check.run();
    await check.run();
    lifecycle.emit('mined', 'ab'.repeat(32), 1);
    await check.look();
    expect(longWays(FEW_ROWS, 5)).to.deep.equal([]);
  });

  it('read no older rows for a look at unfollowed registries', async () => {
    statements.clear();
    const followed = { chainId: SCOPE.chainId, registries: [], scope: undefined };
    const { deliveries, issuances } = await unfollowedOf(database, followed);
    expect([deliveries.length, issuances.length]).to.deep.equal([1, 1]);
    // The index holds unfinished issuances alone.
    const unfinished = /^SCAN issuances USING INDEX issuances_unfinished$/;
    expect(longWays([...FEW_ROWS, DEAD_LETTERS, unfinished], 2)).to.deep.equal([]);
  });

  it('read no older rows for the pages of the console', async () => {
    const { db } = database;
    const feed = await openSampleFeed(database);
    await record(database, feed, 4, [eventIn(4, 1n), eventIn(4, 4n)], 0);
    const { channel, event } = await db
      .selectFrom('deliveries')
      .select(['channel', 'event'])
      .orderBy('event', 'desc')
      .executeTakeFirstOrThrow();
    const attempt = { channel, event, status: 500, error: 'refused' };
    await db
      .insertInto('attempts')
      .values({ ...attempt, attempt: 1, attempted_at: 1, milliseconds: 1 })
      .execute();
    await db.insertInto('dead_letters').values({ channel, event, died_at: 1, attempts: 1 }).execute();
    statements.clear();
    const after = { event: 2, channel: 1 };
    for (const states of [undefined, ['waiting', 'failed'], ['failed'], ['dead'], ['delivered']] as const)
      for (const subscription of [undefined, DEFAULT_SUBSCRIPTION])
        await listDeliveries(db, { states, subscription, after, limit: 1 });
    const { deliveries } = await listDeliveries(db, { states: ['dead'], limit: 1 });
    const eventId = deliveries[0]?.event.eventId;
    expect(await listDeliveries(db, { tokenId: '4', limit: 1 })).to.have.nested.property('deliveries[0]');
    expect(await listDeliveries(db, { eventId, limit: 1 })).to.deep.equal({ deliveries, next: undefined });
    const [stored] = await deliveriesOfEvent(db, eventId ?? '');
    const found = stored && (await eventDetails(db, () => undefined, stored, 0));
    expect(found?.deliveries.map(({ attempts }) => attempts.length)).to.deep.equal([1]);
    const name = `${SAMPLE_REGISTRY.chainId}:${SAMPLE_REGISTRY.registryAddress}`;
    expect((await listEvents(db, { registry: name, tokenId: '1' })).events).to.have.length(2);
    await issuingProgress(db, SCOPE, '00', undefined);
    await movedSince(db);
    // Names and ids are of one row in each feed.
    const few = /INDEX sqlite_autoindex_(subscriptions|events)_1 \((name|event_id)=\?\)$/;
    const ofOneEvent = /^SEARCH announced USING INDEX events_of_original \(original=\?\)$/;
    expect(longWays([...FEW_ROWS, few, ofOneEvent], 15)).to.deep.equal([]);
  });

  it('read no older rows for the figures of the console', async () => {
    const { db } = database;
    statements.clear();
    const [figures] = await outboxFiguresOf(db, [SAMPLE_FEED]);
    expect([figures!.waiting > 0, figures!.deadLetters]).to.deep.equal([true, 1]);
    const limits = { slowBefore: 0, failingBefore: 0, now: 0 };
    for (const hasWebhook of [true, false])
      await conditionsOfChannels(db, new Map([[SAMPLE_FEED, hasWebhook]]), limits);
    expect(longWays([...FEW_ROWS, DEAD_LETTERS], 3)).to.deep.equal([]);
  });

  it('read no older rows for the removal of old events', async () => {
    const { db } = database;
    const feed = await openSampleFeed(database);
    await record(database, feed, 3, [eventIn(1, 3n)], 0);
    await db.deleteFrom('blocks').where('number', '<', 3).execute();
    await db
      .updateTable('queues')
      .set((eb) => ({ head: eb('tail', '+', 1) }))
      .execute();
    statements.clear();
    expect(await purgeEvents(systemTime, database, SAMPLE_FEED, 1)).to.be.greaterThan(0);
    expect(longWays(FEW_ROWS, 6)).to.deep.equal([]);
  });

  /** The steps whose cost grows with the stored rows; there must be more than `fewest` statements. */
  function longWays(alsoShort: readonly RegExp[], fewest: number): string[] {
    const asked = [...statements].filter((text) => /\bwhere\b|\bselect\b/.test(text));
    expect(asked.length).to.be.greaterThan(fewest);
    const file = new Sqlite(join(state.settings.DATA_DIR, 'state.sqlite'));
    const long = asked.flatMap((text) => {
      const parameters = (text.match(/\?/g) ?? []).map(() => null);
      const plans = file.prepare(`explain query plan ${text}`).all(parameters) as Plan[];
      return plans
        .filter(({ detail }) => /SCAN|SEARCH|TEMP B-TREE/.test(detail))
        .filter((plan) => !isShort(plan, text) && !alsoShort.some((way) => way.test(plan.detail)))
        .map(({ detail }) => `${detail}: ${text}`);
    });
    file.close();
    return long;
  }
});
