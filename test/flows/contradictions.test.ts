import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { openSqliteBesideService } from '../../service/database/open-sqlite';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create } from '../helpers/processes/create-call';
import { healthOf, metricOf } from '../helpers/processes/health-and-metrics';
import { startService, type LogLine, type RunningService } from '../helpers/processes/running-service';
import { owned } from '../helpers/resources';
import { createLocalSetup } from '../helpers/chain/local-setup';
import { VirtualTime } from '../helpers/virtual-time';

const MINUTE_MS = 60_000;
const MINTED = 'com.service.etr.minted';

describe('the contradiction check of journal and events', () => {
  let time: VirtualTime;
  let service: RunningService;
  let database: Database;
  /** Token ids in the form of the journal. */
  const tokens: string[] = [];

  before(async () => {
    const local = await createLocalSetup();
    // Its callers wait for real answers.
    const issuing = await startService(local.settings);
    const owner = await local.account(1);
    for (let count = 0; count < 3; count++) {
      const { body } = await create(issuing.url, { ...minimal, owner, holder: owner });
      tokens.push(body.signedW3CDocument.credentialStatus.tokenId);
    }
    await issuing.stop();
    time = VirtualTime.ofRequests();
    service = await startService(local.settings, { time });
    database = owned(
      'a database',
      await openSqliteBesideService(systemTime, local.settings.DATA_DIR ?? ''),
      'close',
    );
    await time.until('their mints are recorded', async () => (await mintedEvents()).length === tokens.length);
  });

  const mintedEvents = (): Promise<{ id: number; token_id: string }[]> =>
    database.db
      .selectFrom('events')
      .innerJoin('tokens', 'tokens.id', 'events.token')
      .select(['events.id', 'token_id'])
      .where('type', '=', MINTED)
      .orderBy('block_number')
      .execute();
  const told = (): LogLine[] => service.log.filter(({ msg }) => msg?.includes('contradict each other'));

  it('logs and counts each contradiction once, stays healthy, and reads missing events again', async () => {
    const [failed = '', unseen = '', other = ''] = tokens;
    const { db } = database;
    await db
      .updateTable('issuances')
      .set({ state: 'failed', failure_code: 'MINT_REVERTED', failure_message: 'It was paused.' })
      .where('token_id', '=', failed)
      .execute();
    await db
      .updateTable('issuances')
      .set({ tx_hash: `0x${'ab'.repeat(32)}` })
      .where('token_id', '=', other)
      .execute();
    const event = (await mintedEvents()).find(({ token_id }) => BigInt(token_id) === BigInt(`0x${unseen}`));
    const recorded = () => metricOf(service.url, 'etr_events_recorded_total');
    const before = (await recorded()) ?? 0;
    await db
      .deleteFrom('events')
      .where('id', '=', event?.id ?? 0)
      .execute();
    await time.until('both are told', () => told().length >= 2);
    await time.pass(5 * MINUTE_MS);
    expect(
      told().map(({ tokenId, error }) => [tokenId, (error as { code: string }).code]),
    ).to.have.deep.members([
      [failed, 'FAILED_MINT_HAS_TOKEN'],
      [other, 'MINTED_BY_ANOTHER_TRANSACTION'],
    ]);
    expect(await mintedEvents()).to.have.length(tokens.length);
    expect(told().map(({ level }) => level)).to.deep.equal(['error', 'error']);
    expect(await metricOf(service.url, 'etr_contradictions_total')).to.equal(2);
    expect(await recorded()).to.equal(before + 1);
    expect(await healthOf(service.url)).to.include({ httpStatus: 200, status: 'ok' });
  });
});
