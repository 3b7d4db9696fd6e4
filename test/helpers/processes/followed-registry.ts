import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { networkOfChain, readConfirmations } from '../../../service/chain/networks';
import { expectedEvents, type ExpectedEvent } from '../chain/expected-events';
import { eventually } from '../eventually';
import { healthOf, metricOf } from './health-and-metrics';
import { withoutId } from '../receiver/delivery-promises';
import { startRecordingReceiver } from '../receiver/recording-receiver';
import { startService, type LogLine, type RunningService } from './running-service';
import type { LocalSetup } from '../chain/local-setup';
import { VirtualTime } from '../virtual-time';
import { startRpcProxy, type Answerer, type RpcProxy } from '../chain/rpc-proxy';

/** The status of the answers to events: always the same, or chosen for each event. */
export type WebhookStatus = number | ((event: CloudEvent) => number | Promise<number>);

/** A service that follows the setup's registry from the next block on, and a receiver of its events. */
export interface FollowedRegistry {
  service: RunningService;
  /**
   * Its time. It is virtual, unless the service issues: then callers wait for it. It stands still while a
   * test waits for anything but `until`.
   */
  time: VirtualTime | undefined;
  /** Lets time pass until there is a value other than undefined and false, and returns the value. */
  until<T>(this: void, what: string, probe: () => T | Promise<T>): Promise<NonNullable<T>>;
  /**
   * Every verified event that arrived, in order, including repetitions and those answered with a failure.
   */
  attempted: CloudEvent[];
  /** The events that were answered with 2xx. */
  accepted: CloudEvent[];
  /** Lets the receiver answer with this from now on. It starts with 200. */
  answer(this: void, status: WebhookStatus): void;
  /** Lines of the service's log with this message, since it was last started. */
  logged(this: void, message: string): LogLine[];
  /** Waits until the chain is read to its end. */
  caughtUp(this: void): Promise<void>;
  /** Waits until the chain is read to its end and nothing waits for delivery. */
  settled(this: void): Promise<void>;
  /**
   * Waits until everything is read and delivered. Fails when an event of the chain is missing, came twice or
   * came out of the order of its token, or when an event came that the chain does not have.
   *
   * @param registries the followed registries. Defaults to that of the setup.
   */
  allDeliveredOnce(this: void, registries?: readonly string[]): Promise<void>;
  /** Ends the service, runs `meanwhile`, and starts the service again on the same data. */
  restart(this: void, meanwhile: () => Promise<unknown>): Promise<void>;
}

/** Options of `whileFollowing`. */
export interface Following {
  /** Name of the data folder. Defaults to a new one. */
  name?: string;
  /** Override those of the setup. The service can issue only if they have WALLET_PRIVATE_KEY. */
  settings?: Record<string, string>;
  /** Content of service.config.json besides `webhook`. */
  config?: object;
  /** Defaults to the next block. */
  fromBlock?: number;
  /** Defaults to a new one. */
  time?: VirtualTime;
}

/**
 * Retries that are short enough for a test. No attempt may time out while a busy machine halts the process:
 * its event would come twice.
 */
const QUICK_RETRIES = { timeoutMs: 15_000, retry: { initialDelayMs: 50, maxDelayMs: 200 } };

let services = 0;

/** Follows the registry while `act` runs, and then stops everything, also after an error. */
export async function whileFollowing(
  local: LocalSetup,
  following: Following,
  act: (followed: FollowedRegistry) => Promise<void>,
): Promise<void> {
  const { name = `followed-${++services}`, settings: own, config } = following;
  const fromBlock = following.fromBlock ?? (await local.client.getBlockNumber()) + 1;
  const [attempted, accepted]: [CloudEvent[], CloudEvent[]] = [[], []];
  let status: WebhookStatus = 200;
  const receiver = await startRecordingReceiver(
    local.publicKeyFile,
    async ({ event, verified }, response) => {
      if (verified) attempted.push(event);
      const answer = typeof status === 'number' ? status : await status(event);
      if (verified && answer < 300) accepted.push(event);
      response.writeHead(verified ? answer : 401).end();
    },
  );
  const configFile = join(local.folder, `${name}.config.json`);
  writeFileSync(configFile, JSON.stringify({ webhook: QUICK_RETRIES, ...config }));
  const settings: Record<string, string> = {
    ...local.settings,
    SERVICE_CONFIG: configFile,
    DATA_DIR: join(local.folder, name),
    WEBHOOK_URL: receiver.url,
    START_BLOCK: String(fromBlock),
    // Without a wallet no signing threads start, which take a second of processor time.
    WALLET_PRIVATE_KEY: '',
    ...own,
  };
  const isIssuing = settings.WALLET_PRIVATE_KEY !== '' || settings.WALLET_SIGNER_URL !== undefined;
  const time = isIssuing ? undefined : (following.time ?? VirtualTime.ofRequests());
  const until = <T>(what: string, probe: () => T | Promise<T>): Promise<NonNullable<T>> =>
    time === undefined ? eventually(what, probe) : time.until(what, probe);
  const parts = time && { time };
  let service = await startService(settings, parts);
  const confirmations = readConfirmations(settings.CONFIRMATIONS ?? '0') ?? 0;
  const finalBlock = async (): Promise<number> =>
    typeof confirmations === 'number'
      ? (await local.client.getBlockNumber()) - confirmations
      : ((await local.client.getBlock(confirmations))?.number ?? 0);
  const caughtUp = async (): Promise<void> => {
    await until('everything is read', async () => {
      const next = (await finalBlock()) + 1;
      const { feeds } = await healthOf(service.url);
      return feeds.length > 0 && feeds.every(({ nextBlock }) => nextBlock === next);
    });
  };
  const settled = async (): Promise<void> => {
    await caughtUp();
    const waiting = () => metricOf(service.url, 'etr_deliveries_waiting');
    await until('everything is delivered', async () => (await waiting()) === 0);
  };
  try {
    await act({
      get service() {
        return service;
      },
      time,
      until,
      attempted,
      accepted,
      answer: (next) => void (status = next),
      logged: (message) => service.log.filter(({ msg }) => msg === message),
      caughtUp,
      settled,
      async allDeliveredOnce(registries = [local.registryAddress]) {
        await settled();
        const network = networkOfChain(Number(settings.NET));
        const expected = registries.map((address) =>
          expectedEvents(local.client, address, fromBlock, network),
        );
        expectSame(accepted, (await Promise.all(expected)).flat());
      },
      async restart(meanwhile) {
        await service.stop();
        await meanwhile();
        service = await startService(settings, parts);
      },
    });
  } finally {
    await service.stop();
    await receiver.close();
  }
}

/**
 * Follows the registry like `whileFollowing`, through a proxy in front of the node that answers with
 * `answerer` from the beginning.
 */
export async function whileFollowingThroughProxy(
  local: LocalSetup,
  { answerer, ...following }: Following & { answerer?: Answerer },
  act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
): Promise<void> {
  await using proxy = await startRpcProxy(local.node.url, answerer);
  const settings = { ...following.settings, RPC_URL: proxy.url };
  await whileFollowing(local, { ...following, settings }, (followed) => act(proxy, followed));
}

/** Compares first the identifying fields, so that a failure is readable, and then everything. */
function expectSame(accepted: readonly CloudEvent[], expected: readonly ExpectedEvent[]): void {
  expect(bySubject(accepted, briefly)).to.deep.equal(bySubject(expected, briefly));
  expect(bySubject(accepted, withoutId)).to.deep.equal(bySubject(expected, withoutId));
}

/** Groups events by subject: only events of the same subject have an order. */
function bySubject<T>(
  events: readonly ExpectedEvent[],
  describe: (event: ExpectedEvent) => T,
): Record<string, T[]> {
  const subjects: Record<string, T[]> = {};
  for (const event of events) (subjects[`${event.source}/${event.subject}`] ??= []).push(describe(event));
  return subjects;
}

function briefly({ type, data }: ExpectedEvent): string {
  return `${type} in block ${data.blockNumber}, log ${data.logIndex} of ${data.transactionHash}`;
}
