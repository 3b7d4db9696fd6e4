import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { startChild } from '../devnet/child-process';
import { PROJECT_ROOT } from '../service/base/project-root';
import { largeDocument } from '../test/helpers/credentials/large-document';
import { peakMegabytes } from '../test/helpers/processes/process-memory';
import { startServiceProcess, type ServiceProcess } from '../test/helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { ALL_THREADS } from './all-threads';
import { percentile } from './spread';

const DOCUMENTS = 4;
const MEGABYTES = 40;
const ROUNDS = 3;
const IDLE_MS = 3_000;
const AIM_P99_MS = 100;
const AIM_RSS_MB = 2_048;

/**
 * Measures how long `GET /` takes while four documents of 40 MB are signed and minted, and the peak memory of
 * the service.
 */
export async function run(): Promise<void> {
  const local = await createLocalSetup();
  try {
    await onService(local, await startServiceProcess({ ...local.settings, ...ALL_THREADS }));
  } finally {
    await local.stop();
  }
}

async function onService(local: LocalSetup, service: ServiceProcess): Promise<void> {
  try {
    const starting = await probed(service, () => sleep(IDLE_MS));
    console.log(`GET / every 10 ms, after the start: ${lateness(starting)}`);
    const idle = await probed(service, () => sleep(IDLE_MS));
    console.log(`GET / every 10 ms, nothing else to do: ${lateness(idle)}`);
    for (let round = 1; round <= ROUNDS; round++) await measure(local, service);
    const peak = peakMegabytes(service.pid)?.toFixed(0) ?? 'unknown';
    console.log(`resident memory of the service: ${peak} MB at most (aim: below ${AIM_RSS_MB})`);
  } finally {
    await service.end('SIGTERM');
  }
}

async function measure(local: LocalSetup, service: ServiceProcess): Promise<void> {
  const owner = await local.account(1);
  // Made beforehand, because this takes processor time.
  const bodies = Array.from({ length: DOCUMENTS }, () => largeDocument(owner, MEGABYTES));
  let seconds = NaN;
  const times = await probed(service, async () => {
    const start = performance.now();
    await Promise.all(bodies.map((body) => post(service.url, body)));
    seconds = (performance.now() - start) / 1000;
  });
  console.log(
    `while ${DOCUMENTS} documents of ${MEGABYTES} MB are issued, which took ${seconds.toFixed(1)} s: ` +
      `${lateness(times)} (aim: p99 below ${AIM_P99_MS} ms)`,
  );
}

/** Repeats the request while the service answers that it is busy. */
async function post(url: string, body: Buffer): Promise<void> {
  for (;;) {
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/create/BILL_OF_LADING`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    if (response.status === 200) return;
    if (response.status !== 503) throw new Error(`POST answered ${response.status}`);
    await sleep(Number(response.headers.get('Retry-After')) * 1000);
  }
}

/** Milliseconds of each `GET /` that was due while `work` ran. */
async function probed({ url }: ServiceProcess, work: () => Promise<void>): Promise<number[]> {
  const prober = startChild('prober', join(PROJECT_ROOT, 'bench/prober.cjs'), [url], {});
  try {
    await prober.lineMatching(/^probing$/);
    await work();
  } finally {
    await prober.stop();
  }
  const [, json = ''] = await prober.lineMatching(/^probed (.*)$/);
  const { times, failures } = JSON.parse(json) as { times: number[]; failures: number };
  if (failures > 0) throw new Error(`${failures} requests failed`);
  return times;
}

function lateness(times: readonly number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) => percentile(times, part).toFixed(1));
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${times.length})`;
}
