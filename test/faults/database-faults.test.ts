import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { postgresDatabase, type PostgresDatabase } from '../helpers/database/postgres';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService } from '../helpers/processes/running-service';
import { startServiceProcess, type ServiceProcess } from '../helpers/processes/service-process';
import { startTcpProxy, type TcpProxy } from '../helpers/processes/tcp-proxy';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';

/** The number of events of one mint and one transfer. */
const EVENTS_OF_A_TOKEN = 6;
const ROUNDS = 5;

describe('services on one PostgreSQL database', () => {
  let local: LocalSetup;
  let database: PostgresDatabase | undefined;
  let proxy: TcpProxy;
  let receiver: RecordingReceiver;
  let settings: Record<string, string>;
  let accounts: string[];

  before(async function () {
    database = await postgresDatabase();
    if (database === undefined) return this.skip();
    database.drop();
    local = await createLocalSetup();
    accounts = await Promise.all([1, 2].map((index) => local.account(index)));
  });

  beforeEach(async () => {
    database = await postgresDatabase();
    const url = new URL(database?.url ?? '');
    proxy = await startTcpProxy(Number(url.port));
    receiver = await startRecordingReceiver(local.publicKeyFile);
    url.port = String(proxy.port);
    const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
    const { settings: common } = local;
    settings = { ...common, DATABASE_URL: url.href, WEBHOOK_URL: receiver.url, START_BLOCK };
    // Without a wallet no signing threads start.
    settings.WALLET_PRIVATE_KEY = '';
  });

  afterEach(async () => {
    await receiver?.close();
    await proxy?.close();
    database?.drop();
  });

  /** One mint and one transfer. */
  async function goOn(): Promise<void> {
    const [from = '', to = ''] = accounts;
    await transferHolder(local, await mintDirectly(local, from), { from, to });
  }

  /** Waits until all of the chain's events have arrived, and checks the promises to subscribers. */
  async function expectAllDelivered(options: { mostBack?: number } = {}): Promise<void> {
    const expected = await expectedEvents(local.client, local.registryAddress, Number(settings.START_BLOCK));
    await eventually('every event', () => {
      return new Set(receiver.deliveries.map(({ event }) => event.id)).size >= expected.length;
    });
    expectPromisesKept(receiver.deliveries, expected, options);
  }

  const stateOf = async ({ url }: ServiceProcess): Promise<string> => {
    const { feeds } = (await (await fetch(`${url}/health`)).json()) as { feeds: { state: string }[] };
    return feeds[0]?.state ?? '';
  };

  it('read the chain one at a time; another takes over when the reader is killed', async () => {
    writeFileSync(settings.SERVICE_CONFIG ?? '', JSON.stringify({ webhook: { timeoutMs: 1_000 } }));
    const services = await Promise.all([startServiceProcess(settings), startServiceProcess(settings)]);
    await eventually('one of each', async () => {
      const states = await Promise.all(services.map(stateOf));
      return states.sort().join() === 'following,standby';
    });
    const states = await Promise.all(services.map(stateOf));
    const [reader, other] = (states[0] === 'following' ? services : services.toReversed()) as [
      ServiceProcess,
      ServiceProcess,
    ];
    try {
      await goOn();
      await eventually('something came', () => receiver.deliveries.length > 0);
      await reader.end('SIGKILL');
      await goOn();
      await goOn();
      await expectAllDelivered({ mostBack: EVENTS_OF_A_TOKEN - 1 });
      expect(await stateOf(other)).to.equal('following');
    } finally {
      expect(await other.end('SIGTERM')).to.equal(0);
    }
  });

  it('deliver each event once when two of them run', async () => {
    const services = [await startService(settings), await startService(settings)];
    try {
      for (let round = 0; round < ROUNDS; round++) await goOn();
      await expectAllDelivered();
      expect(receiver.deliveries).to.have.length(ROUNDS * EVENTS_OF_A_TOKEN);
    } finally {
      await Promise.all(services.map((service) => service.stop()));
    }
  });

  it('lose no event when every database connection is cut repeatedly', async () => {
    await using service = await startService(settings);
    for (let round = 0; round < 3; round++) {
      await goOn();
      expect(proxy.cut()).to.be.greaterThan(0);
      await goOn();
      await eventually('it is connected again', async () => {
        const { feeds } = (await (await fetch(`${service.url}/health`)).json()) as {
          feeds: { state: string }[];
        };
        return feeds[0]?.state === 'following';
      });
    }
    await expectAllDelivered();
  });
});
