import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { eventually } from '../helpers/eventually';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { API_KEY, AUTHORIZATION, fetchDocument } from '../helpers/processes/documents-call';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startService, type LogLine } from '../helpers/processes/running-service';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import {
  startRecordingReceiver,
  accept,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';

const ADMIN_API_KEY = 'admin-key-of-a-removed-database';

/** A change of the files at this path while the service runs. */
const ACCIDENTS: Readonly<Record<string, (folder: string) => void>> = {
  'folder is removed': (folder) => rmSync(folder, { recursive: true }),
  'write-ahead log is replaced': (folder) => {
    rmSync(join(folder, 'state.sqlite-wal'));
    writeFileSync(join(folder, 'state.sqlite-wal'), '');
  },
};

describe('a service whose SQLite database is removed while it runs', () => {
  let local: LocalSetup;
  let receiver: RecordingReceiver;
  let service: ServiceProcess | undefined;
  let settings: Record<string, string>;
  let owner: string;
  let runs = 0;

  before(async function () {
    if (!existsSync('/proc/self/fd')) return this.skip();
    local = await createLocalSetup();
    owner = await local.account(1);
  });

  beforeEach(async () => {
    receiver = await startRecordingReceiver(local.publicKeyFile);
    settings = {
      ...local.settings,
      // A quote, because the command is for a shell.
      DATA_DIR: join(local.folder, `carrier's data ${++runs}`, 'state'),
      START_BLOCK: String((await local.client.getBlockNumber()) + 1),
      WEBHOOK_URL: receiver.url,
      API_KEY,
      ADMIN_API_KEY,
    };
    service = await startServiceProcess(settings);
  });

  const issue = (key: string, url = service?.url ?? ''): Promise<CreateAnswer> => {
    const body = { ...minimal, owner, holder: owner };
    return create(url, body, { headers: { ...AUTHORIZATION, 'Idempotency-Key': key } });
  };

  /** The lines of the log with this code. */
  const reported = (): LogLine[] =>
    (service?.output() ?? '')
      .split('\n')
      .filter((line) => line.includes('"DATABASE_REMOVED"') && line.includes('"level":"error"'))
      .map((line) => JSON.parse(line) as LogLine);

  /** Moves the file away and back: the service goes on as before. Returns the answer to a first request. */
  async function issueOnceMovedBack(): Promise<CreateAnswer> {
    const path = join(settings.DATA_DIR ?? '', 'state.sqlite');
    const elsewhere = join(dirname(settings.DATA_DIR ?? ''), 'elsewhere');
    renameSync(path, elsewhere);
    await eventually('a line in the log', () => reported().length === 1);
    renameSync(elsewhere, path);
    const first = await eventually('it is issued again', async () => {
      const answer = await issue('first');
      return answer.status === 200 ? answer : undefined;
    });
    expect(await healthOf(service?.url ?? ''))
      .to.include({ status: 'ok' })
      .and.not.have.property('database');
    return first;
  }

  for (const [what, happen] of Object.entries(ACCIDENTS))
    it(`goes on once its file is back, and loses nothing by the named command when its ${what}`, async () => {
      const first = await issueOnceMovedBack();
      await eventually('the events of the first', () => receiver.deliveries.length === EVENTS_OF_A_MINT);
      receiver.answerWith((_delivery, response) => void response.writeHead(500).end());
      const second = await issue('second');
      await eventually('an attempt to deliver', () => receiver.deliveries.length > EVENTS_OF_A_MINT);

      happen(settings.DATA_DIR ?? '');
      const line = await eventually('a line in the log', () => reported()[1]);
      expect((await issue('third')).errorCode).to.equal('DATABASE_REMOVED');
      const subscribed = await fetch(`${service?.url}/subscriptions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${ADMIN_API_KEY}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ sink: receiver.url, protocol: 'HTTP' }),
      });
      expect(subscribed.status).to.equal(503);
      expect(await healthOf(service?.url ?? '')).to.include({
        httpStatus: 200,
        status: 'failing',
        database: 'removed',
      });
      expect((await fetchDocument(service?.url ?? '', tokenIdOf(first))).status).to.equal(200);
      expect(reported()).to.have.length(2);

      execFileSync('sh', ['-c', String(line.command)]);
      expect(await service?.ended).to.equal(0);
      receiver.deliveries.splice(0);
      receiver.answerWith(accept);
      // In this process: a start of another takes seconds.
      await using restarted = await startService(settings);
      expect((await issue('first', restarted.url)).text).to.equal(first.text);
      expect((await issue('second', restarted.url)).text).to.equal(second.text);
      await eventually('the undelivered events', () => receiver.deliveries.length >= EVENTS_OF_A_MINT);
      expect(receiver.deliveries.map(({ event }) => event.data.tokenIdHex)).to.deep.equal(
        Array<string>(EVENTS_OF_A_MINT).fill(tokenIdOf(second)),
      );
      expect((await healthOf(restarted.url)).status).to.equal('ok');
    });
});

function tokenIdOf({ body }: CreateAnswer): string {
  return body.signedW3CDocument.credentialStatus.tokenId;
}
