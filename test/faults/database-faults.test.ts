import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import type { ReplacedParts } from '../../service/composition/app';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { mintDirectly, transferHolder } from '../helpers/chain/direct-mint';
import { eventually } from '../helpers/eventually';
import { newState, type State } from '../helpers/database/engines';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { startServiceProcess } from '../helpers/processes/service-process';
import { startTcpProxy } from '../helpers/processes/tcp-proxy';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

/** The number of events of one mint and one transfer. */
const EVENTS_OF_A_TOKEN = 6;
const ROUNDS = 5;
/** Longer than a lease. */
const LEASES_END_AFTER_MS = 60_000;

describe('services on one PostgreSQL database', () => {
  const local = localSetupOfSuite();
  let receiver: RecordingReceiver;
  let settings: Record<string, string>;

  beforeEach(async function () {
    const state: State | undefined = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    receiver = await startRecordingReceiver(local.publicKeyFile);
    const START_BLOCK = String((await local.client.getBlockNumber()) + 1);
    settings = { ...local.settings, ...state.settings, WEBHOOK_URL: receiver.url, START_BLOCK };
    // Without a wallet no signing threads start.
    settings.WALLET_PRIVATE_KEY = '';
  });

  /** One mint and one transfer. */
  async function goOn(): Promise<void> {
    const [from, to] = [await local.account(1), await local.account(2)];
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

  const until = (state: string, { url }: Pick<RunningService, 'url'>): Promise<unknown> =>
    eventually(`it is ${state}`, async () => (await healthOf(url)).feeds[0]?.state === state);

  it('deliver each event once; one reads the chain, and another takes over when it is killed', async () => {
    await using reader = await startServiceProcess(settings);
    await until('following', reader);
    let ahead = 0;
    const replaced: ReplacedParts = { time: { ...systemTime, now: () => systemTime.now() + ahead } };
    await using other = await startService(settings, replaced);
    await until('standby', other);
    for (let round = 0; round < ROUNDS; round++) await goOn();
    await expectAllDelivered();
    expect(receiver.deliveries).to.have.length(ROUNDS * EVENTS_OF_A_TOKEN);
    await goOn();
    await eventually('one more came', () => receiver.deliveries.length > ROUNDS * EVENTS_OF_A_TOKEN);
    await reader.end('SIGKILL');
    ahead = LEASES_END_AFTER_MS;
    await goOn();
    await goOn();
    await expectAllDelivered({ mostBack: EVENTS_OF_A_TOKEN - 1 });
    await until('following', other);
  });

  it('lose no event when every database connection is cut repeatedly', async () => {
    const url = new URL(settings.DATABASE_URL ?? '');
    await using proxy = await startTcpProxy(Number(url.port));
    url.port = String(proxy.port);
    await using service = await startService({ ...settings, DATABASE_URL: url.href });
    for (let round = 0; round < 3; round++) {
      await goOn();
      expect(proxy.cut()).to.be.greaterThan(0);
      await goOn();
      await until('following', service);
    }
    await expectAllDelivered();
  });
});
