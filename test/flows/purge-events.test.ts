import { expect } from 'chai';
import { EVENTS_OF_A_MINT, mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { systemTime } from '../../service/base/time';
import { openSqliteBesideService } from '../../service/database/open-sqlite';
import { createDatabaseJournal } from '../../service/journal/journal';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { preparedDocument } from '../helpers/database/prepared-documents';
import { eventually } from '../helpers/eventually';
import { tdoc } from '../helpers/processes/command-output';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { mineBlocks } from '../helpers/chain/mine-blocks';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

const DAY_MS = 86_400_000;
const DEPTH = 2;

describe('old events', () => {
  let local: LocalSetup;
  let receiver: RecordingReceiver;
  let service: RunningService | undefined;
  let settings: Record<string, string>;
  let accounts: { from: string; to: string };

  before(async () => {
    local = await createLocalSetup();
    receiver = await startRecordingReceiver(local.publicKeyFile);
    accounts = { from: await local.account(1), to: await local.account(2) };
    const FINALITY_DEPTH = String(DEPTH);
    settings = { ...local.settings, FINALITY_DEPTH, WEBHOOK_URL: receiver.url };
    service = await startService(settings);
  });

  const command = async (...args: string[]): Promise<string> =>
    (await askTdocInProcess(args, settings)).stdout;
  const problemOf = async (...args: string[]): Promise<string> =>
    (await askTdocInProcess(args, settings)).stderr;
  const came = (count: number): Promise<unknown> =>
    eventually(`${count} deliveries`, () => receiver.deliveries.length >= count);
  /** Mines past FINALITY_DEPTH, so that earlier events can be purged; waits until all blocks are read. */
  async function settle(): Promise<void> {
    await mineBlocks(local, DEPTH + 1);
    const head = await local.client.getBlockNumber();
    await eventually('all blocks are read', async () => {
      const { feeds } = await healthOf(service?.url ?? '');
      return feeds[0]?.nextBlock === head + 1;
    });
  }

  it('are purged on a confirmed request while the service runs; later ones are delivered', async () => {
    const token = await mintDirectly(local, accounts.from);
    await came(EVENTS_OF_A_MINT);
    const [first] = receiver.deliveries;
    await settle();
    expect(await problemOf('purge-events')).to.match(/Give --older-than DAYS/);
    // In a process of its own: in this one, the command could ask at the terminal of the tests.
    const unasked = tdoc(['purge-events', '--older-than', '0'], settings);
    const refusal = await unasked.catch(({ stderr }: { stderr: string }) => stderr);
    expect(refusal).to.match(/Nothing was removed.*CONFIRMATION_MISSING/);
    expect(await command('purge-events', '--older-than', '1')).to.match(/nothing to remove/);
    const nothing = await command('purge-events', '--older-than', '1', '--json');
    expect(JSON.parse(nothing)).to.include({ removed: 0 }).and.have.property('before');
    expect(await command('purge-events', '--older-than', '0', '--yes'))
      .to.match(
        /About to remove 5 events of 31337:0x\w+ that were last sent before .*\. This cannot be undone\./,
      )
      .and.match(/5 removed/);
    expect(await problemOf('redeliver', '--event', String(first?.event.id))).to.match(/EVENT_UNKNOWN/);
    const again = JSON.parse(await command('redeliver', '--from-block', '0', '--json')) as {
      registries: Record<string, unknown>[];
    };
    expect(again.registries[0]).to.include({ queued: 0 }).and.have.property('purgedUpTo').that.is.a('number');
    expect(await command('redeliver', '--from-block', '0')).to.match(
      /old events of blocks up to \d+ were removed/,
    );
    await transferHolder(local, token, accounts);
    await came(EVENTS_OF_A_MINT + 1);
  });

  it('are purged after EVENT_RETENTION_DAYS, and documents after DOCUMENT_RETENTION_DAYS', async () => {
    await settle();
    await service?.stop();
    service = undefined;
    await age(2 * DAY_MS);
    service = await startService({ ...settings, EVENT_RETENTION_DAYS: '1', DOCUMENT_RETENTION_DAYS: '1' });
    const { log } = service;
    for (const what of ['old events', 'issued documents'])
      await eventually(`${what} are removed`, () => log.find(({ msg }) => msg === `${what} removed`));
    expect(await problemOf('deliveries', '--event', String(receiver.deliveries.at(-1)?.event.id))).to.match(
      /EVENT_UNKNOWN/,
    );
  });

  /** Moves the times of all events and attempts into the past, and adds a document that failed then. */
  async function age(ms: number): Promise<void> {
    const database = await openSqliteBesideService(systemTime, settings.DATA_DIR ?? '');
    const { registryAddress } = local;
    const scope = { chainId: 31337, registryAddress, issuer: 'did:web:localhost%3A3000' };
    const journal = createDatabaseJournal(database, scope, { now: () => systemTime.now() - ms });
    const document = preparedDocument();
    await journal.add(document);
    await journal.failed(document.tokenId, { code: 'MINT_REVERTED', message: 'The registry is paused.' });
    await database.db
      .updateTable('events')
      .set((eb) => ({ recorded_at: eb('recorded_at', '-', ms) }))
      .execute();
    await database.db
      .updateTable('attempts')
      .set((eb) => ({ attempted_at: eb('attempted_at', '-', ms) }))
      .execute();
    await database.close();
  }
});
