import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { Agent } from 'undici';
import { exchange } from '../service/base/exchange';
import { systemTime } from '../service/base/time';
import type { Database } from '../service/database/database';
import { channelsOf } from '../service/outbox/channels';
import type { ClaimedQueue } from '../service/outbox/claim-queues';
import { takeTurn, type Settlement } from '../service/outbox/settle-queues';
import type { Engine } from '../test/helpers/database/engines';
import { compare, rateOf, timeOf, type Figures, type Size } from './measure';
import { deliver, fillOutbox, installedEngines, subscribe, withDatabase } from './outbox';
import { withReceiver, type CountingReceiver } from './processes';

const EVENTS = 10_000;
/** The service's default. */
const AT_ONCE = 16;

const READING = {
  time: systemTime,
  timeoutMs: 30_000,
  late: () => new Error('no answer'),
  onData: () => undefined,
};

/** Events a second from the outbox to a receiver, against a loop that posts such bodies, signed or not. */
export async function delivery(size: Size): Promise<void> {
  const events = size.of(EVENTS);
  for (const engine of await installedEngines())
    await withReceiver((receiver) =>
      compare(`${events} events from ${engine} to a receiver, ${AT_ONCE} at once`, size, {
        'bare loop': () => postAll(receiver, events, false),
        'bare loop that signs': () => postAll(receiver, events, true),
        'the outbox': () => withDatabase(engine, (database) => drain(database, events, receiver)),
      }),
    );
}

async function drain(database: Database, events: number, receiver: CountingReceiver): Promise<Figures> {
  const feed = 'bench:delivery';
  await subscribe(database, 1, () => ({ sink: receiver.url }));
  await fillOutbox(database, feed, events);
  await receiver.reset();
  const delivering = deliver(database);
  const ms = await timeOf(async () => {
    await delivering.start(feed);
    await receiver.received(events);
    await delivering.stop();
  });
  return { 'a second': (events / ms) * 1_000 };
}

async function postAll(receiver: CountingReceiver, count: number, isSigned: boolean): Promise<Figures> {
  const body = JSON.stringify({ id: randomUUID(), data: 'x'.repeat(1_000) });
  const { privateKey } = generateKeyPairSync('ed25519');
  const dispatcher = new Agent({ connections: AT_ONCE });
  const rate = await rateOf(count, AT_ONCE, async () => {
    const signature = isSigned && { 'x-service-signature': sign(null, Buffer.from(body), privateKey) };
    const headers = {
      'content-type': 'application/json',
      ...(signature && { 'x-service-signature': signature['x-service-signature'].toString('base64') }),
    };
    const post = { origin: receiver.url, path: '/', method: 'POST', headers, body } as const;
    await exchange(dispatcher, post, READING).answered;
  });
  await dispatcher.close();
  return { 'a second': rate };
}

const BACKLOGS = [1_000, 10_000, 100_000, 500_000];
/** Enough queues for a few turns. */
const LEAST = 500;
/** The number of queues that a busy service claims and settles at a time. */
const BATCH = 16;
const TURNS = 40;

/** How long it takes to settle a batch of deliveries and claim the next, by backlog. It should not grow. */
export async function backlog(size: Size): Promise<void> {
  const backlogs = new Set(BACKLOGS.map((events) => Math.max(size.of(events), LEAST)));
  for (const engine of await installedEngines()) await fillAll(engine, size, [...backlogs], {});
}

/** Fills a database for each backlog, and then compares them: all are open at the same time. */
async function fillAll(
  engine: Engine,
  size: Size,
  [events, ...others]: readonly number[],
  cases: Readonly<Record<string, () => Promise<Figures>>>,
): Promise<void> {
  if (events === undefined)
    return compare(
      `to settle ${BATCH} queues and claim ${BATCH}, ${engine}`,
      { rounds: size.of(TURNS) },
      cases,
    );
  await withDatabase(engine, async (database) => {
    const feed = 'bench:backlog';
    await fillOutbox(database, feed, events);
    const [{ channel = 0 } = {}] = await channelsOf(database.db, feed);
    let claimed: readonly ClaimedQueue[] = [];
    const turn = async (): Promise<Figures> => {
      const settlements = claimed.map(delivered);
      const terms = { limit: BATCH, perQueue: 1, now: Date.now(), leaseMs: 60_000 };
      const claim = { channel, lease: randomUUID(), ...terms };
      const ms = await timeOf(async () => {
        const taken = await takeTurn(database, { settlements, claim, mayBeDue: true });
        claimed = taken.claimed;
      });
      if (claimed.length !== BATCH) throw new Error(`${claimed.length} claimed`);
      return { ms };
    };
    await fillAll(engine, size, others, { ...cases, [`${events} events wait`]: turn });
  });
}

function delivered(queue: ClaimedQueue): Settlement {
  const attempt = { attemptedAt: Date.now(), milliseconds: 1, status: 200, error: undefined };
  return { queue, delivered: queue.deliveries.map((delivery) => ({ delivery, attempt })) };
}
