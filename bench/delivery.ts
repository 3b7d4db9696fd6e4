import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { Agent, request } from 'undici';
import { systemClock } from '../service/base/clock';
import { realisedOptions } from '../service/base/delivery-options';
import { signingKeyOf } from '../service/base/signing-keys';
import type { Database } from '../service/database/database';
import { createDeliverySlots } from '../service/delivery/delivery-slots';
import { createFeedDelivery } from '../service/delivery/feed-delivery';
import { startCountingReceiver, type CountingReceiver } from './counting-receiver';
import { discardingLogger } from './discarding-logger';
import { fillOutbox } from './fill-outbox';
import { median } from './median';
import { ENGINES } from './state';

const ROUNDS = 5;
const TOKENS = 2_000;
const EVENTS_PER_TOKEN = 5;
const EVENTS = TOKENS * EVENTS_PER_TOKEN;
/** The service's default. */
const CONCURRENCY = 16;

/**
 * Measures events a second from the outbox to a local receiver. The comparison is a loop that posts the same
 * bodies through the same HTTP client, once without and once with signing, which every sender needs. They
 * take turns, so that other load of the machine affects all of them.
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
  const rates = { service: [] as number[], bare: [] as number[], signing: [] as number[] };
  const { privateKey } = generateKeyPairSync('ed25519');
  // The first round compiles code and does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    const feed = `bench:${round}`;
    await fillOutbox(database, feed, { tokens: TOKENS, eventsPerToken: EVENTS_PER_TOKEN });
    const bodies = await bodiesOf(database, feed);
    const service = await rateOf(() => deliver(database, feed, receiver, privateKey));
    const bare = await rateOf(() => postAll(receiver.url, bodies, () => ({})));
    const signing = await rateOf(() => postAll(receiver.url, bodies, (body) => signed(body, privateKey)));
    if (round === 0) continue;
    rates.service.push(service);
    rates.bare.push(bare);
    rates.signing.push(signing);
  }
  console.log(`${database.engine}, ${EVENTS} events of ${TOKENS} tokens, medians of ${ROUNDS} rounds:`);
  console.log(`  from the outbox:    ${Math.round(median(rates.service))} events/s`);
  console.log(`  bare loop:          ${against(rates.service, rates.bare)}`);
  console.log(`  bare loop, signing: ${against(rates.service, rates.signing)}`);
}

/** The rates of a comparison, and the service's rate as a share of them. */
function against(service: readonly number[], compared: readonly number[]): string {
  const ratios = service.map((rate, round) => rate / (compared[round] ?? NaN));
  const [least, most] = [Math.min(...ratios).toFixed(2), Math.max(...ratios).toFixed(2)];
  const ratio = `the outbox reaches ${median(ratios).toFixed(2)} of it (${least} to ${most})`;
  return `${Math.round(median(compared))} posts/s, ${ratio}`;
}

async function rateOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (EVENTS / (performance.now() - start)) * 1000;
}

/** Runs the real worker, with signing and logging, until the last event is received and settled. */
async function deliver(
  database: Database,
  feed: string,
  receiver: CountingReceiver,
  privateKey: KeyObject,
): Promise<void> {
  const webhook = {
    url: receiver.url,
    headers: {},
    signingKeys: { key: signingKeyOf(privateKey), next: undefined },
    ...realisedOptions({ maxConcurrentDeliveries: CONCURRENCY }),
  };
  const log = discardingLogger();
  await receiver.reset();
  const delivery = createFeedDelivery({
    database,
    clock: systemClock,
    logger: log.logger,
    slots: createDeliverySlots({ most: 1_000, logger: log.logger }),
    targetOf: () => webhook,
    restorePurged: async () => undefined,
    onAttempt: () => undefined,
  });
  await delivery.start(feed);
  await receiver.received(EVENTS);
  await delivery.stop();
  log.end();
}

async function postAll(
  url: string,
  bodies: readonly string[],
  headersOf: (body: string) => Record<string, string>,
): Promise<void> {
  const dispatcher = new Agent({ connections: CONCURRENCY });
  let next = 0;
  const postOnes = async (): Promise<void> => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const headers = { 'content-type': 'application/json', ...headersOf(body) };
      const answer = await request(url, { dispatcher, method: 'POST', headers, body });
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, postOnes));
  await dispatcher.close();
}

function signed(body: string, key: KeyObject): Record<string, string> {
  return { 'x-service-signature': `ed25519=${sign(null, Buffer.from(body), key).toString('base64url')}` };
}

async function bodiesOf({ db }: Database, feed: string): Promise<string[]> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select('body')
    .where('feeds.feed', '=', feed)
    .execute();
  return rows.map(({ body }) => body);
}
