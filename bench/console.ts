import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalSetup } from '../test/helpers/chain/local-setup';
import { create } from '../test/helpers/processes/create-call';
import { BILL_OF_LADING } from '../devnet/bill-of-lading';
import { startCountingReceiver } from './counting-receiver';
import { median } from './median';
import { startProbedService, type ProbedService } from './probed-service';

const CONSOLES = 10;
const ROUNDS = 5;
const ROUND_MS = 8_000;
const DOCUMENTS_A_SECOND = 5;
const ADMIN_API_KEY = 'key-of-the-bench';

/**
 * Compares the processor time of a busy service while ten consoles are open with that while none is. Five
 * documents a second are issued and their events delivered. The two take turns.
 */
export async function run(): Promise<void> {
  const local = await createLocalSetup();
  const receiver = await startCountingReceiver();
  const settings = { ...local.settings, WEBHOOK_URL: receiver.url, ADMIN_API_KEY };
  const service = await startProbedService(settings);
  try {
    const owner = await local.account(1);
    const issue = (): Promise<unknown> =>
      create(service.url, { owner, holder: owner, credentialSubject: BILL_OF_LADING });
    const costs = { none: [] as number[], ten: [] as number[] };
    await busy(service, issue);
    for (let round = 0; round < ROUNDS; round++) {
      costs.none.push(await busy(service, issue));
      const close = await openConsoles(service.url);
      costs.ten.push(await busy(service, issue));
      close();
    }
    const [none, ten] = [median(costs.none), median(costs.ten)];
    console.log(
      `${DOCUMENTS_A_SECOND} documents a second, no console: ${none.toFixed(0)} ms of CPU a second`,
    );
    console.log(`${CONSOLES} consoles open: ${ten.toFixed(0)} ms; ratio ${(ten / none).toFixed(2)}`);
  } finally {
    await service.end('SIGTERM');
    await receiver.stop();
    await local.stop();
  }
}

/** Issues at the rate for a round, and returns the processor time per second. */
async function busy(service: ProbedService, issue: () => Promise<unknown>): Promise<number> {
  const [before, start] = [await service.cost(), performance.now()];
  const issued: Promise<unknown>[] = [];
  while (performance.now() - start < ROUND_MS) {
    issued.push(issue());
    await sleep(1_000 / DOCUMENTS_A_SECOND);
  }
  await Promise.all(issued);
  const after = await service.cost();
  return ((after.cpuMs - before.cpuMs) / (performance.now() - start)) * 1_000;
}

/** Opens consoles: each asks for the overview, and for the deliveries whenever the revision changes. */
async function openConsoles(url: string): Promise<() => void> {
  const answer = await fetch(`${url}/console/api/session`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ key: ADMIN_API_KEY }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  if (!answer.ok || cookie === '') throw new Error(`the log-in answered ${answer.status}`);
  const closing = new AbortController();
  const options = { headers: { cookie }, signal: closing.signal };
  for (let index = 0; index < CONSOLES; index++)
    void watch(url, options).catch((error: unknown) => {
      if (!closing.signal.aborted) console.error(error);
    });
  return () => closing.abort();
}

async function watch(
  url: string,
  options: { headers: { cookie: string }; signal: AbortSignal },
): Promise<void> {
  let etag = '';
  let revision: string | undefined;
  for (; !options.signal.aborted; await sleep(1_000)) {
    const headers = { ...options.headers, 'if-none-match': etag };
    const answer = await fetch(`${url}/console/api/overview`, { ...options, headers });
    if (answer.status === 304) continue;
    if (!answer.ok) throw new Error(`the overview answered ${answer.status}`);
    etag = answer.headers.get('etag') ?? '';
    const before = revision;
    ({ revision } = (await answer.json()) as { revision: string });
    if (revision === before) continue;
    await (await fetch(`${url}/deliveries?limit=50`, options)).arrayBuffer();
  }
}
