import { randomUUID } from 'node:crypto';
import type { Database } from '../service/database/database';
import { channelsOf } from '../service/outbox/channels';
import type { ClaimedQueue } from '../service/outbox/claim-queues';
import { takeTurn, type Settlement } from '../service/outbox/settle-queues';
import { fillOutbox } from './fill-outbox';
import { spread } from './spread';
import { ENGINES, type WithDatabase } from './state';

const BACKLOGS = [1_000, 10_000, 100_000, 500_000];
const EVENTS_PER_TOKEN = 5;
/** The number of queues that a busy service claims and settles at a time. */
const BATCH = 16;
const WARM_UP = 10;
const TURNS = 40;

/** An outbox in its own database with this many waiting events. */
interface Outbox {
  backlog: number;
  database: Database;
  channel: number;
  claimed: ClaimedQueue[];
  /** Milliseconds of each turn. */
  times: number[];
}

/**
 * Measures how long it takes to settle a batch of deliveries and claim the next, by backlog. The time should
 * not grow.
 */
export async function run(): Promise<void> {
  for (const withDatabase of ENGINES) await compare(withDatabase, BACKLOGS, []);
}

/**
 * Fills an outbox for each backlog. The outboxes take turns, so that other load of the machine affects all of
 * them.
 */
async function compare(
  withDatabase: WithDatabase,
  [backlog, ...others]: readonly number[],
  filled: readonly Outbox[],
): Promise<void> {
  if (backlog === undefined) return takeTurns(filled);
  await withDatabase(async (database) => {
    const feed = `bench:${backlog}`;
    await fillOutbox(database, feed, {
      tokens: backlog / EVENTS_PER_TOKEN,
      eventsPerToken: EVENTS_PER_TOKEN,
    });
    const [{ channel = 0 } = {}] = await channelsOf(database.db, feed);
    await compare(withDatabase, others, [...filled, { backlog, database, channel, claimed: [], times: [] }]);
  });
}

async function takeTurns(outboxes: readonly Outbox[]): Promise<void> {
  for (let turn = 0; turn < WARM_UP + TURNS; turn++) {
    for (const outbox of outboxes) await takeOne(outbox, turn >= WARM_UP);
  }
  for (const { backlog, database, times } of outboxes) {
    console.log(
      `${database.engine}, ${backlog} waiting: ${spread(times)} to settle ${BATCH} and claim ${BATCH}`,
    );
  }
}

async function takeOne(outbox: Outbox, isMeasured: boolean): Promise<void> {
  const { database, channel } = outbox;
  const settlements = outbox.claimed.map(delivered);
  const terms = { limit: BATCH, perQueue: 1, now: Date.now(), leaseMs: 60_000 };
  const claim = { channel, lease: randomUUID(), ...terms };
  const start = performance.now();
  const { claimed, lost } = await takeTurn(database, { settlements, claim, mayBeDue: true });
  if (isMeasured) outbox.times.push(performance.now() - start);
  if (claimed.length !== BATCH || lost.length > 0)
    throw new Error(`${claimed.length} claimed, ${lost.length} lost`);
  outbox.claimed = claimed;
}

function delivered(queue: ClaimedQueue): Settlement {
  const attempt = { attemptedAt: Date.now(), milliseconds: 1, status: 200, error: undefined };
  return { queue, delivered: queue.deliveries.map((delivery) => ({ delivery, attempt })) };
}
