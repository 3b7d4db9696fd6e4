import { expect } from 'chai';
import type { Database } from '../../service/database/database';
import { createLogger } from '../../service/base/logger';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import { startRetention } from '../../service/composition/app';
import { newState, openState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const DAY_MS = 86_400_000;
const logger = createLogger({ level: 'silent', mask: (text) => text });
const what = 'issued documents';

describe('the retention of issued documents', () => {
  let database: Database;
  let journal: Journal;
  let now: number;
  const clock = { now: () => now };

  beforeEach(async () => {
    database = await openState((await newState('SQLite'))!);
    now = 100 * DAY_MS;
    journal = createDatabaseJournal(database, SCOPE, clock);
  });

  const issued = async (): Promise<string> => {
    const prepared = preparedDocument();
    await journal.add(prepared);
    await journal.mined(prepared.tokenId, mintedBy('0x01'), true);
    return prepared.tokenId;
  };
  const purgeDocuments = (before: number): Promise<number> => journal.purge(before);
  const isKept = async (tokenId: string): Promise<boolean> => (await journal.find(tokenId)) !== undefined;

  it('removes documents older than its days, at the start and as they age', async () => {
    const old = await issued();
    now += 30 * DAY_MS + 1;
    const recent = await issued();
    const retention = startRetention({ what, purge: purgeDocuments, days: 30, clock, logger, everyMs: 5 });
    try {
      await eventually('the old one is gone', async () => !(await isKept(old)));
      expect(await isKept(recent)).to.equal(true);
      now += 30 * DAY_MS;
      expect(await isKept(recent)).to.equal(true);
      now += 1;
      await eventually('the other is gone', async () => !(await isKept(recent)));
    } finally {
      await retention.stop();
    }
  });

  it('removes nothing but the leftovers of a crash when no days are set', async () => {
    const old = await issued();
    const { db } = database;
    const key = { scope: `31337:${SCOPE.registryAddress}:${SCOPE.issuer}`, token_id: 'left' };
    await db
      .insertInto('loose_documents')
      .values({ ...key, begun_at: now })
      .execute();
    await db
      .insertInto('document_parts')
      .values({ ...key, part: 0, bytes: new Uint8Array(9) })
      .execute();
    now += 10_000 * DAY_MS;
    const retention = startRetention({ what, purge: purgeDocuments, days: undefined, clock, logger });
    await eventually('the rest is gone', async () => {
      const parts = await db.selectFrom('document_parts').select('token_id').execute();
      return parts.length === 1;
    });
    await retention.stop();
    expect(await isKept(old)).to.equal(true);
  });

  it('continues after a failed run, and ends when it is stopped', async () => {
    let looks = 0;
    const purge = async (): Promise<number> => {
      if (++looks === 1) throw new Error('the database is away');
      return 0;
    };
    const retention = startRetention({ what, purge, days: 1, clock, logger, everyMs: 1 });
    await eventually('it looks again', () => looks >= 3);
    await retention.stop();
    const looksAtEnd = looks;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(looks).to.equal(looksAtEnd);
  });
});
