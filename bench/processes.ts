import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { BILL_OF_LADING } from '../devnet/bill-of-lading';
import { startChild } from '../devnet/child-process';
import { PROJECT_ROOT } from '../service/base/project-root';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { eventually } from '../test/helpers/eventually';
import { create } from '../test/helpers/processes/create-call';
import { whileProbing } from '../test/helpers/processes/prober';
import { startServiceProcess, type ServiceProcess } from '../test/helpers/processes/service-process';
import { owned } from '../test/helpers/resources';
import { percentile, type Figures } from './measure';

/** The receiver in receiver.cjs. */
export type CountingReceiver = Awaited<ReturnType<typeof startCountingReceiver>>;

/** Starts the receiver on a free port. */
async function startCountingReceiver() {
  const child = startChild('receiver', join(PROJECT_ROOT, 'bench/receiver.cjs'), [], {});
  const [, url = ''] = await child.lineMatching(/listening on (\S+)/);
  const call = async (method: string, path: string): Promise<void> => {
    await (await fetch(`${url}${path}`, { method })).arrayBuffer();
  };
  const receiver = {
    url,
    /** Sets the count to 0. */
    reset: () => call('DELETE', '/'),
    /** Resolves after this many requests. */
    received: (count: number) => call('GET', `/${count}`),
    /** The block of each event, and the time of its arrival in epoch milliseconds. */
    arrivals: async () =>
      (await (await fetch(`${url}/arrivals`)).json()) as [block: number, arrivedAt: number][],
    stop: () => child.stop(),
  };
  return owned('the receiver', receiver, 'stop');
}

/** Runs a program with a receiver. */
export async function withReceiver(use: (receiver: CountingReceiver) => Promise<void>): Promise<void> {
  await using receiver = await startCountingReceiver();
  await use(receiver);
}

/** Measures on a chain of its own: a Hardhat node grows with every mint and slows down. */
export async function onNewChain<Result>(use: (local: LocalSetup) => Promise<Result>): Promise<Result> {
  await using local = await createLocalSetup();
  return await use(local);
}

/** The cost of the service's process since its start: processor time of all threads, and that of SQLite. */
interface Cost {
  cpuMs: number;
  writtenKib: number;
  commits: number;
  statements: number;
}

/** Memory after a garbage collection: that of JavaScript and its buffers, and that of the process. */
export interface Memory {
  usedMib: number;
  residentMib: number;
}

/** A service with the probe of probe.cjs. */
export interface ProbedService extends ServiceProcess {
  cost(this: void): Promise<Cost>;
  memory(this: void): Promise<Memory>;
  /** Issues the sample document to account 1. */
  issue(this: void): Promise<void>;
}

/** Runs the service with all its signing threads, from the time when it follows its registry. */
export async function withService<Result>(
  local: LocalSetup,
  settings: Record<string, string>,
  use: (service: ProbedService) => Promise<Result>,
): Promise<Result> {
  await using service = await startServiceProcess({
    ...local.settings,
    // Tests use one.
    SIGNING_THREADS: String(availableParallelism()),
    ...settings,
    NODE_OPTIONS: `--require ${join(PROJECT_ROOT, 'bench/probe.cjs')}`,
  });
  const probeUrl = /probe on (\S+)/.exec(service.output())?.[1] ?? '';
  await eventually('the registry is followed', async () =>
    (await (await fetch(`${service.url}/health`)).text()).includes('"following"'),
  );
  const owner = await local.account(1);
  const body = JSON.stringify({ credentialSubject: BILL_OF_LADING, owner, holder: owner });
  return await use({
    ...service,
    cost: async () => (await (await fetch(probeUrl)).json()) as Cost,
    memory: async () => (await (await fetch(`${probeUrl}/memory`)).json()) as Memory,
    async issue() {
      const { status, text } = await create(service.url, body);
      if (status !== 200) throw new Error(`POST answered ${status}: ${text}`);
    },
  });
}

/** How long `GET /` takes that is sent every 10 ms while the work lasts. */
export async function whileProbed({ url }: ServiceProcess, work: () => Promise<unknown>): Promise<Figures> {
  const { times, failures } = (await whileProbing(url, work)) ?? { times: [], failures: Infinity };
  if (failures > 0) throw new Error(`${failures} requests failed`);
  const [median, p99, most] = [0.5, 0.99, 1].map((share) => percentile(times, share));
  return { 'GET /, median, ms': median ?? NaN, 'p99, ms': p99 ?? NaN, 'most, ms': most ?? NaN };
}
