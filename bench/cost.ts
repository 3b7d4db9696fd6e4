import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BILL_OF_LADING } from '../devnet/bill-of-lading';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { startRpcProxy } from '../test/helpers/chain/rpc-proxy';
import { create } from '../test/helpers/processes/create-call';
import { ALL_THREADS } from './all-threads';
import { createBareMinter } from './bare-minter';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { median } from './median';
import { presign, sendMints } from './presigned-mints';
import { costOfEach, startProbedService, type ProbedService } from './probed-service';

const ROUNDS = 5;
const DOCUMENTS = 500;
const AT_ONCE = 20;
/** The first documents compile code and process contexts. */
const WARM_UP = 60;
const EVENTS_OF_A_MINT = 5;
const IDLE_MS = 30_000;
/** The service looks at the chain more often for some seconds after an event. */
const REST_MS = 5_000;

type Figure =
  | 'creates/s'
  | 'creates/s over presigned mints/s'
  | 'service CPU per document, ms'
  | 'commits per document'
  | 'KiB written per document';
type Figures = Record<Figure, number>;

/**
 * Measures what a document costs: twenty requests at once, each mined at once, with the five events of each
 * delivered. Services with and without a webhook take turns, each on a new chain. The node's limit is taken
 * after the service has stopped, on the same chain.
 */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    const rounds: Record<'webhook' | 'no webhook', Figures[]> = { webhook: [], 'no webhook': [] };
    for (let round = 0; round < ROUNDS; round++) {
      rounds.webhook.push(await costOfDocuments(receiver));
      rounds['no webhook'].push(await costOfDocuments(undefined));
    }
    console.log(`${DOCUMENTS} documents, ${AT_ONCE} at once; medians of ${ROUNDS} rounds (least to most):`);
    for (const [variant, figures] of Object.entries(rounds)) report(variant, figures);
    await countCalls(receiver);
  } finally {
    await receiver.stop();
  }
}

async function costOfDocuments(receiver: CountingReceiver | undefined): Promise<Figures> {
  const local = await createLocalSetup();
  // Not in memory, where the tests have their databases: what is written is counted.
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'tds-bench-'));
  try {
    const webhook: Record<string, string> = receiver === undefined ? {} : { WEBHOOK_URL: receiver.url };
    const service = await startProbedService({ ...local.settings, ...ALL_THREADS, ...webhook, DATA_DIR });
    try {
      await createAndDeliver(local, service, WARM_UP, receiver);
      const before = await service.cost();
      const start = performance.now();
      await createAll(local, service, DOCUMENTS);
      const rate = (DOCUMENTS / (performance.now() - start)) * 1000;
      await receiver?.received(DOCUMENTS * EVENTS_OF_A_MINT);
      const { cpuMs, commits, writtenKib } = costOfEach(before, await service.cost(), DOCUMENTS);
      await service.end('SIGTERM');
      return {
        'creates/s': rate,
        'creates/s over presigned mints/s': rate / (await presignedRate(local)),
        'service CPU per document, ms': cpuMs,
        'commits per document': commits,
        'KiB written per document': writtenKib,
      };
    } finally {
      await service.end('SIGTERM');
    }
  } finally {
    await local.stop();
    rmSync(DATA_DIR, { recursive: true });
  }
}

async function createAndDeliver(
  local: LocalSetup,
  service: ProbedService,
  count: number,
  receiver: CountingReceiver | undefined,
): Promise<void> {
  await receiver?.reset();
  await createAll(local, service, count);
  await receiver?.received(count * EVENTS_OF_A_MINT);
  await receiver?.reset();
}

async function createAll(local: LocalSetup, { url }: ProbedService, count: number): Promise<void> {
  const owner = await local.account(1);
  const body = JSON.stringify({ credentialSubject: BILL_OF_LADING, owner, holder: owner });
  let left = count;
  const createOnes = async (): Promise<void> => {
    while (left-- > 0) {
      const { status } = await create(url, body);
      if (status !== 200) throw new Error(`POST answered ${status}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, createOnes));
}

/** The node is warm: it has just mined the documents. */
async function presignedRate(local: LocalSetup): Promise<number> {
  const minter = await createBareMinter(local.client, local.registryAddress);
  const mints = await presign(minter, DOCUMENTS);
  const start = performance.now();
  await sendMints(local.node.url, minter, mints, 1);
  return (DOCUMENTS / (performance.now() - start)) * 1000;
}

/** Counts the calls to the node with a proxy, which takes time itself and so runs apart from the rates. */
async function countCalls(receiver: CountingReceiver): Promise<void> {
  const local = await createLocalSetup();
  const proxy = await startRpcProxy(local.node.url);
  try {
    const settings = { ...local.settings, ...ALL_THREADS, WEBHOOK_URL: receiver.url, RPC_URL: proxy.url };
    const service = await startProbedService(settings);
    try {
      await createAndDeliver(local, service, WARM_UP, receiver);
      const [requests, calls] = [proxy.sizes.length, proxy.calls.length];
      await createAndDeliver(local, service, DOCUMENTS, receiver);
      const perDocument = (count: number): string => (count / DOCUMENTS).toFixed(1);
      console.log(
        `  RPC per document: ${perDocument(proxy.sizes.length - requests)} requests with ` +
          `${perDocument(proxy.calls.length - calls)} calls: ${byMethod(proxy.counts(calls))}`,
      );
      await sleep(REST_MS);
      const idleSince = proxy.calls.length;
      await sleep(IDLE_MS);
      const perMinute = ((proxy.calls.length - idleSince) * 60_000) / IDLE_MS;
      console.log(`  RPC calls a minute, idle: ${perMinute}: ${byMethod(proxy.counts(idleSince))}`);
    } finally {
      await service.end('SIGTERM');
    }
  } finally {
    await proxy.close();
    await local.stop();
  }
}

function byMethod(counts: Record<string, number>): string {
  const most = Object.entries(counts).sort(([, one], [, other]) => other - one);
  return most.map(([method, count]) => `${count} ${method}`).join(', ');
}

function report(variant: string, rounds: readonly Figures[]): void {
  console.log(`${variant}:`);
  for (const figure of Object.keys(rounds[0] ?? {}) as Figure[]) {
    const values = rounds.map((round) => round[figure]);
    const [least, most] = [Math.min(...values).toFixed(2), Math.max(...values).toFixed(2)];
    console.log(`  ${figure}: ${median(values).toFixed(2)} (${least} to ${most})`);
  }
}
