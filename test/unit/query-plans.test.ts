import { join } from 'node:path';
import { expect } from 'chai';
import Sqlite from 'libsql';
import type { Database } from '../../service/database/database';
import { systemClock } from '../../service/clock';
import { createDatabaseJournal } from '../../service/journal/database-journal';
import { mintFiguresOf } from '../../service/journal/mint-figures';
import { newState, openState, type State } from '../helpers/engines';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/prepared-documents';
import { eventIn, openSampleFeed, record } from '../helpers/sample-feed';

/** What SQLite says of a statement's way to its rows: `SEARCH events USING INDEX events_by_block (feed=?)`. */
interface Plan {
  detail: string;
}

/** Whether a way does not get longer with what was ever stored: by a key, by a partial index of few rows, or to the last of an index. */
function isShort({ detail }: Plan, text: string): boolean {
  if (/INDEX (issuances|mint_transactions)_position \(scope=\?\)/.test(detail))
    return text.includes('order by "position" desc limit ?');
  return SHORT_WAYS.some((way) => way.test(detail));
}

const SHORT_WAYS = [
  /INDEX (events_orphaned|issuances_unfinished|sqlite_autoindex_orphans_1) /,
  /INDEX sqlite_autoindex_(feeds|streams)_1 \(/,
  /\(.*=\? AND .*[=<>]\?\)/,
  /FOR RIGHT PART OF ORDER BY/,
];

describe('what is asked of SQLite for each document and each range of blocks', () => {
  let state: State | undefined;
  let database: Database;
  const statements = new Set<string>();
  const prepare = Reflect.get(Sqlite.prototype, 'prepare') as (
    this: unknown,
    text: string,
  ) => Sqlite.Statement;

  before(async () => {
    state = await newState('SQLite');
    if (state === undefined) throw new Error('SQLite is always there');
    database = await openState(state);
    Reflect.set(Sqlite.prototype, 'prepare', function (this: unknown, text: string) {
      statements.add(text);
      return prepare.call(this, text);
    });
  });

  after(async () => {
    Reflect.set(Sqlite.prototype, 'prepare', prepare);
    await database.close();
    await state?.remove();
  });

  it('is found without reading what was stored before', async () => {
    const feed = await openSampleFeed(database);
    statements.clear();
    await record(database, feed, 3, [eventIn(1, 1n), eventIn(3, 2n)], 0);
    const journal = createDatabaseJournal(database, SCOPE, systemClock);
    const prepared = preparedDocument(600_000);
    const { tokenId } = prepared;
    await journal.add(prepared, { key: 'once', requestHash: 'ab' });
    await journal.keepTransactions([{ tokenId, hash: '0x01', nonce: 1, raw: '0x02' }]);
    await journal.submitted([tokenId]);
    await mintFiguresOf(database.db, SCOPE);
    await journal.unfinished();
    await journal.mined(tokenId, mintedBy('0x01'), false);
    await journal.final([tokenId]);
    await journal.signed();
    await journal.highestFinal();
    await journal.finalSince(1);
    await journal.findByKey('once');
    const asked = [...statements].filter((text) => /\bwhere\b|\bselect\b/.test(text));
    expect(asked.length).to.be.greaterThan(10);

    const file = new Sqlite(join(state?.settings.DATA_DIR ?? '', 'state.sqlite'));
    const longWays = asked.flatMap((text) => {
      const parameters = (text.match(/\?/g) ?? []).map(() => null);
      const plans = file.prepare(`explain query plan ${text}`).all(parameters) as Plan[];
      return plans
        .filter(({ detail }) => /SCAN|SEARCH|TEMP B-TREE/.test(detail))
        .filter((plan) => !isShort(plan, text))
        .map(({ detail }) => `${detail}: ${text}`);
    });
    file.close();
    expect(longWays).to.deep.equal([]);
  });
});
