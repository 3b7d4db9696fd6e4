import { join } from 'node:path';
import { PROJECT_ROOT } from '../service/base/project-root';
import { eventually } from '../test/helpers/eventually';
import { startServiceProcess, type ServiceProcess } from '../test/helpers/processes/service-process';

/** The cost of the service's process since its start. */
export interface Cost {
  /** Processor time of all threads. */
  cpuMs: number;
  /** KiB that the process had the system write. */
  writtenKib: number;
  /** Transactions of SQLite. */
  commits: number;
}

/** A service with the probe of probe.cjs. */
export interface ProbedService extends ServiceProcess {
  cost(): Promise<Cost>;
}

/** Starts the service, and waits until it follows its registry. */
export async function startProbedService(settings: Record<string, string>): Promise<ProbedService> {
  const probe = join(PROJECT_ROOT, 'bench/probe.cjs');
  const service = await startServiceProcess({ ...settings, NODE_OPTIONS: `--require ${probe}` });
  const probeUrl = /probe on (\S+)/.exec(service.output())?.[1] ?? '';
  await eventually('the registry is followed', async () => {
    const health = await (await fetch(`${service.url}/health`)).text();
    return health.includes('"following"');
  });
  return { ...service, cost: async () => (await (await fetch(probeUrl)).json()) as Cost };
}

/** The cost between two readings, for each of `count` things. */
export function costOfEach(before: Cost, after: Cost, count: number): Cost {
  const each = (kind: keyof Cost): number => (after[kind] - before[kind]) / count;
  return { cpuMs: each('cpuMs'), writtenKib: each('writtenKib'), commits: each('commits') };
}
