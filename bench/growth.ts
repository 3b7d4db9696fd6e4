import { create } from '../test/helpers/processes/create-call';
import { peakMegabytes } from '../test/helpers/processes/process-memory';
import { startServiceProcess, type ServiceProcess } from '../test/helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { ALL_THREADS } from './all-threads';
import { GROWING_DOCUMENTS, requestBodyOf } from './growing-documents';
import { median } from './median';
import { openSigning } from './signing-limit';

const ROUNDS = 9;
/** Rounds that do not count. */
const WARM_UP = 2;

/**
 * Measures how long one POST /create takes as the document grows, from the first byte of the request to the
 * last of the answer. Signing is measured separately, to show its share.
 */
export async function run(): Promise<void> {
  const local = await createLocalSetup();
  try {
    const service = await startServiceProcess({ ...local.settings, ...ALL_THREADS });
    try {
      await measureAll(local, service);
    } finally {
      await service.end('SIGTERM');
    }
  } finally {
    await local.stop();
  }
}

async function measureAll(local: LocalSetup, service: ServiceProcess): Promise<void> {
  const signing = await openSigning(local.settings);
  console.log(`one document at a time, medians of ${ROUNDS} rounds:`);
  console.log('| document | POST /create | signing alone | share | most memory so far |');
  console.log('| --- | ---: | ---: | ---: | ---: |');
  try {
    for (const document of GROWING_DOCUMENTS) {
      const body = requestBodyOf(document);
      const times = { create: [] as number[], sign: [] as number[] };
      for (let round = 0; round < WARM_UP + ROUNDS; round++) {
        const created = await timeOf(() => issue(service.url, body));
        const signed = await timeOf(() => signing.sign(body));
        if (round < WARM_UP) continue;
        times.create.push(created);
        times.sign.push(signed);
      }
      const [whole, part] = [median(times.create), median(times.sign)];
      const memory = peakMegabytes(service.pid)?.toFixed(0) ?? '?';
      const share = (part / whole).toFixed(2);
      console.log(
        `| ${document.name} | ${whole.toFixed(0)} ms | ${part.toFixed(0)} ms | ${share} | ${memory} MB |`,
      );
    }
  } finally {
    await signing.close();
  }
}

async function issue(serviceUrl: string, body: string): Promise<void> {
  const { status } = await create(serviceUrl, body);
  if (status !== 200) throw new Error(`POST answered ${status}`);
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
