import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { startChild } from '../devnet/child-process';
import { PROJECT_ROOT } from '../service/base/project-root';
import { setHeld } from '../service/outbox/feeds';
import { newState, openState } from '../test/helpers/database/engines';
import { owned } from '../test/helpers/resources';
import { compare, timeOf, type Figures, type Size } from './measure';
import { fillOutbox, subscribe } from './outbox';
import { withReceiver, type CountingReceiver } from './processes';

const FEED = 'bench:processes';
const SUBSCRIPTIONS = 100;
/** For each of the subscriptions. */
const EVENTS = 150;
/** Each process has so many. */
const CONNECTIONS = 8;
/** The processes have found each other by then. */
const DIVIDED_AFTER_MS = 5_000;

/**
 * Deliveries of one registry's events by several processes, to receivers that take 20 ms. Three processes
 * with a database each share nothing but the machine: they show what it costs that all its processors work.
 */
export async function severalProcesses(size: Size): Promise<void> {
  await using state = await newState('PostgreSQL');
  if (state === undefined) return console.log('PostgreSQL is not installed');
  await withReceiver((receiver) => {
    const by = (processes: number, databases = 1) => {
      return () => measure({ processes, databases, events: size.of(EVENTS), receiver });
    };
    const title = `${SUBSCRIPTIONS} subscriptions, answers after 20 ms, ${CONNECTIONS} connections a process`;
    const cases = { 'one process': by(1), two: by(2), three: by(3), 'three with a database each': by(1, 3) };
    return compare(title, size, cases);
  });
}

/** `processes` and `events`: of each database. */
interface Measured {
  processes: number;
  databases: number;
  events: number;
  receiver: CountingReceiver;
}

async function measure({ processes, databases, events, receiver }: Measured): Promise<Figures> {
  const feeds = await Promise.all(Array.from({ length: databases }, () => fillFeed(events, receiver)));
  try {
    await receiver.reset();
    const starts = feeds.flatMap(({ url }) => Array.from({ length: processes }, () => startDeliverer(url)));
    const deliverers = await Promise.all(starts);
    await sleep(DIVIDED_AFTER_MS);
    await Promise.all(feeds.map(({ begin }) => begin()));
    const all = databases * events * SUBSCRIPTIONS;
    // The start and the end are left out: there not all processes are busy.
    const [first, last] = [all / 5, (all / 5) * 4];
    await receiver.received(first);
    const before = await processorOf(deliverers);
    const ms = await timeOf(() => receiver.received(last));
    const after = await processorOf(deliverers);
    await Promise.all(deliverers.map((one) => one.stop()));
    return {
      'deliveries a second': ((last - first) / ms) * 1_000,
      'processor of a delivery, ms': (after - before) / (last - first),
    };
  } finally {
    for (const feed of feeds) await feed.remove();
  }
}

/** A database with a feed whose events wait, and are held until `begin`. */
async function fillFeed(events: number, receiver: CountingReceiver) {
  const state = await newState('PostgreSQL');
  if (state === undefined) throw new Error('PostgreSQL is not installed');
  const database = await openState(state);
  await subscribe(database, SUBSCRIPTIONS, () => ({ sink: `${receiver.url}/slow` }));
  const feed = await fillOutbox(database, FEED, events);
  await setHeld(database.db, feed, 1);
  return {
    url: state.settings.DATABASE_URL ?? '',
    begin: () => setHeld(database.db, feed, 0),
    async remove() {
      await database[Symbol.asyncDispose]();
      await state[Symbol.asyncDispose]();
    },
  };
}

async function startDeliverer(databaseUrl: string) {
  const probe = join(PROJECT_ROOT, 'bench/probe.cjs');
  const child = startChild(
    'deliverer',
    join(PROJECT_ROOT, 'bench/deliverer.ts'),
    [databaseUrl, FEED, String(CONNECTIONS)],
    { NODE_OPTIONS: `--require ts-node/register/transpile-only --require ${probe}` },
  );
  const [, probeUrl = ''] = await child.lineMatching(/probe on (\S+)/);
  await child.lineMatching(/delivering/);
  return owned('a deliverer', { probeUrl, stop: () => child.stop() }, 'stop');
}

/** The processor time of all of them so far, in milliseconds. */
async function processorOf(processes: readonly { probeUrl: string }[]): Promise<number> {
  const costs = await Promise.all(
    processes.map(async ({ probeUrl }) => (await (await fetch(probeUrl)).json()) as { cpuMs: number }),
  );
  return costs.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
}
