import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openSqlite } from '../service/database/open-sqlite';
import { eventually } from '../test/helpers/eventually';
import { startServiceProcess } from '../test/helpers/processes/service-process';
import { createLocalSetup, type LocalSetup } from '../test/helpers/chain/local-setup';
import { startCountingReceiver } from './counting-receiver';
import { fillOutbox } from './fill-outbox';

const KNOWN = [1_000, 10_000, 100_000];
const EVENTS_PER_TOKEN = 5;
/** Twenty seconds: enough for tens of thousands of deliveries and for garbage collection. */
const SAMPLES = 100;
const SAMPLE_EVERY_MS = 200;

/**
 * Measures the resident memory of the delivering service by the number of stored events. It should not grow.
 */
export async function run(): Promise<void> {
  const local = await createLocalSetup();
  const receiver = await startCountingReceiver();
  try {
    for (const known of KNOWN) {
      const settings = {
        ...local.settings,
        DATA_DIR: join(local.folder, `known-${known}`),
        WEBHOOK_URL: receiver.url,
      };
      await fill(settings, local, known);
      const { samples, delivered } = await residentMegabytes(settings);
      const [last, most] = [samples.at(-1) ?? NaN, Math.max(...samples)];
      const megabytes = `${most.toFixed(0)} MB at most, ${last.toFixed(0)} MB at the end`;
      console.log(`${known} events known: ${megabytes}, while ${delivered} were delivered`);
    }
  } finally {
    await receiver.stop();
    await local.stop();
  }
}

/** The service creates the feed; the events are added while it does not run. */
async function fill(settings: Record<string, string>, local: LocalSetup, known: number): Promise<void> {
  const service = await startServiceProcess(settings);
  await eventually('the registry is followed', async () => {
    const health = await (await fetch(`${service.url}/health`)).text();
    return health.includes('"following"');
  });
  await service.end('SIGTERM');
  const database = await openSqlite(settings.DATA_DIR ?? '');
  const { feed } = await database.db.selectFrom('feeds').select('feed').executeTakeFirstOrThrow();
  const registryAddress = local.registryAddress.toLowerCase();
  const tokens = known / EVENTS_PER_TOKEN;
  await fillOutbox(database, feed, { tokens, eventsPerToken: EVENTS_PER_TOKEN, registryAddress });
  await database.close();
}

async function residentMegabytes(
  settings: Record<string, string>,
): Promise<{ samples: number[]; delivered: number }> {
  const service = await startServiceProcess(settings);
  const samples: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    await sleep(SAMPLE_EVERY_MS);
    const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(service.pid)]);
    samples.push(Number(stdout) / 1024);
  }
  await service.end('SIGTERM');
  const lines = service.output().match(/"eventIds":\[[^\]]*\]/g) ?? [];
  const delivered = lines.reduce((sum, line) => sum + line.split(',').length, 0);
  return { samples, delivered };
}
