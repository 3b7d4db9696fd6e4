import { generateKeyPairSync } from 'node:crypto';
import pino from 'pino';
import { Agent, request } from 'undici';
import type { Database } from '../service/database/database';
import { createFeedDelivery } from '../service/delivery/feed-delivery';
import { DEFAULT_RETRY_SCHEDULE } from '../service/delivery/retry-schedule';
import { createLogger } from '../service/logger';
import { secretMasker } from '../service/secrets';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { fillOutbox } from './fill-outbox';
import { median } from './median';
import { ENGINES } from './state';

const ROUNDS = 5;
const TOKENS = 1_000;
const EVENTS_PER_TOKEN = 5;
const EVENTS = TOKENS * EVENTS_PER_TOKEN;
/** The service's default. */
const CONCURRENCY = 16;

/**
 * Events a second from the outbox to a receiver on this machine, over what a loop reaches that does nothing but post the same
 * bodies through the same HTTP client. The two take turns, so that what else the machine does meets both.
 */
export async function run(): Promise<void> {
  const receiver = await startCountingReceiver();
  try {
    for (const withDatabase of ENGINES) await withDatabase((database) => compare(database, receiver));
  } finally {
    await receiver.stop();
  }
}

async function compare(database: Database, receiver: CountingReceiver): Promise<void> {
  const rates = { service: [] as number[], bare: [] as number[] };
  // The first round compiles code and opens connections: it does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    const feed = `bench:${round}`;
    await fillOutbox(database, feed, { tokens: TOKENS, eventsPerToken: EVENTS_PER_TOKEN });
    const bodies = await bodiesOf(database, feed);
    const service = await rateOf(() => deliver(database, feed, receiver));
    const bare = await rateOf(() => postAll(receiver.url, bodies));
    if (round === 0) continue;
    rates.service.push(service);
    rates.bare.push(bare);
  }
  const ratios = rates.service.map((rate, round) => rate / (rates.bare[round] ?? NaN));
  console.log(`${database.engine}, ${EVENTS} events of ${TOKENS} tokens, ${ROUNDS} rounds, medians:`);
  console.log(`  from the outbox: ${Math.round(median(rates.service))} events/s`);
  console.log(`  bare loop:       ${Math.round(median(rates.bare))} posts/s`);
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  console.log(`  ratio: ${median(ratios).toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`);
}

async function rateOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (EVENTS / (performance.now() - start)) * 1000;
}

/** The real worker, signing and logging as in the service, until the last event is received and settled. */
async function deliver(database: Database, feed: string, receiver: CountingReceiver): Promise<void> {
  const webhook = {
    url: receiver.url,
    headers: {},
    signingKey: generateKeyPairSync('ed25519').privateKey,
    timeoutMs: 15_000,
    maxConcurrentDeliveries: CONCURRENCY,
    retry: DEFAULT_RETRY_SCHEDULE,
  };
  const destination = pino.destination({ dest: '/dev/null', sync: true });
  const logger = createLogger({
    level: 'info',
    mask: secretMasker(['not-a-secret', 'nor-this']),
    destination,
  });
  await receiver.reset();
  const delivery = createFeedDelivery(webhook, database, logger, () => undefined);
  await delivery.start(feed);
  await receiver.received(EVENTS);
  await delivery.stop();
  destination.end();
}

async function postAll(url: string, bodies: readonly string[]): Promise<void> {
  const dispatcher = new Agent({ connections: CONCURRENCY });
  const headers = { 'content-type': 'application/json' };
  let next = 0;
  const postOnes = async (): Promise<void> => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const answer = await request(url, { dispatcher, method: 'POST', headers, body });
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, postOnes));
  await dispatcher.close();
}

async function bodiesOf({ db }: Database, feed: string): Promise<string[]> {
  const rows = await db.selectFrom('events').select('body').where('feed', '=', feed).execute();
  return rows.map(({ body }) => body);
}
