import { expect } from 'chai';
import { createDatabaseJournal } from '../../service/journal/journal';
import type { JournalScope } from '../../service/journal/issuance';
import { mintFiguresOf, type MintFigures } from '../../service/journal/read-issuances';
import { describeOnEngines } from '../helpers/database/engines';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const NOTHING = { waiting: 0, inFlight: 0, mined: 0, oldestAddedAt: undefined };

describeOnEngines('the mint figures of a journal', (on) => {
  let now: number;
  const clock = { now: () => now };
  const figures = (): Promise<MintFigures> => mintFiguresOf(on.database.db, SCOPE);

  beforeEach(() => {
    now = 1_000;
  });

  async function added(scope: JournalScope = SCOPE): Promise<string> {
    const prepared = preparedDocument(10);
    await createDatabaseJournal(on.database, scope, clock).add(prepared);
    now += 1_000;
    return prepared.tokenId;
  }

  it('are zero at first, and count nothing of another issuer', async () => {
    await added({ ...SCOPE, issuer: 'did:web:another.example' });
    expect(await figures()).to.deep.equal(NOTHING);
  });

  it('count mints by state until they are final or failed, and date the oldest not mined', async () => {
    const journal = createDatabaseJournal(on.database, SCOPE, clock);
    const [first, second, third] = [await added(), await added(), await added()];
    expect(await figures()).to.deep.equal({
      ...NOTHING,
      waiting: 3,
      oldestAddedAt: 1_000,
    });
    await journal.submitted([first, second]);
    expect(await figures()).to.include({ waiting: 1, inFlight: 2 });
    await journal.mined(first, mintedBy('0x01'), false);
    expect(await figures()).to.deep.equal({
      waiting: 1,
      inFlight: 1,
      mined: 1,
      oldestAddedAt: 2_000,
    });
    await journal.final([first]);
    await journal.failed(second, { code: 'MINT_REVERTED', message: 'paused' });
    await journal.mined(third, mintedBy('0x03'), true);
    expect(await figures()).to.deep.equal(NOTHING);
    await journal.unmined(third);
    expect(await figures()).to.include({ inFlight: 1, oldestAddedAt: 3_000 });
  });
});
