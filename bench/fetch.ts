import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceEvent } from '../client/events';
import type { LocalSetup } from '../test/helpers/chain/local-setup';
import { mintDirectly } from '../test/helpers/chain/direct-mint';
import { eventually } from '../test/helpers/eventually';
import { compare, percentile, timeOf, type Figures, type Size } from './measure';
import { onNewChain, withService, type Memory, type ProbedService } from './processes';

const CLIENTS = 1_000;
/** Longer than a wait, so that each client asks again. */
const ROUND_MS = 35_000;
const WAIT_SECONDS = 30;
const SETTLE_MS = 5_000;
/** V8 gives free memory back in the course of several collections. */
const COLLECTIONS = 4;
const COLLECTED_AFTER_MS = 2_500;
const MINTS = 40;
const EVENTS_OF_A_MINT = 5;
/** Before a connection that ended is replaced. */
const PAUSE_MS = 100;
const ADMIN_API_KEY = 'key-of-the-bench';
const ROUNDS = 2;

/**
 * The cost of clients that wait for events, and the time at which an event reaches one of them against that
 * at which its webhook arrives.
 */
export async function fetching(size: Size): Promise<void> {
  const clients = size.of(CLIENTS);
  await onNewChain(async (local) => {
    await compare(
      'a service at rest',
      { rounds: Math.min(ROUNDS, size.rounds) },
      {
        'no client': () => idle(local, 0, size),
        [`${clients} clients that wait`]: () => idle(local, clients, size),
      },
    );
    await compare(
      'the five events of a mint, one mint at a time',
      { rounds: Math.min(ROUNDS, size.rounds) },
      { 'webhook and client': () => race(local, size) },
    );
  });
}

/** The cost of one service at rest. Each has a new process, because memory that was used is kept. */
async function idle(local: LocalSetup, clients: number, size: Size): Promise<Figures> {
  return withService(local, { ADMIN_API_KEY }, async (service) => {
    const closing = new AbortController();
    setMaxListeners(0, closing.signal);
    await sleep(SETTLE_MS);
    const memory = await settledMemory(service);
    const waiting = Array.from({ length: clients }, () => follow(service, closing.signal, () => undefined));
    try {
      await sleep(SETTLE_MS);
      const before = await service.cost();
      const ms = await timeOf(() => sleep(size.of(ROUND_MS)));
      const after = await service.cost();
      const { usedMib, residentMib } = await settledMemory(service);
      return {
        'processor, ms a second': ((after.cpuMs - before.cpuMs) / ms) * 1_000,
        'statements a second': ((after.statements - before.statements) / ms) * 1_000,
        'more memory in use, MiB': usedMib - memory.usedMib,
        'more memory of the process, MiB': residentMib - memory.residentMib,
      };
    } finally {
      closing.abort();
      await Promise.all(waiting);
    }
  });
}

async function settledMemory({ memory }: Pick<ProbedService, 'memory'>): Promise<Memory> {
  for (let collection = 1; collection < COLLECTIONS; collection++) {
    await memory();
    await sleep(COLLECTED_AFTER_MS);
  }
  return memory();
}

/** Fetches events from now on until the signal aborts. A connection that ends is replaced. */
async function follow(
  { url }: Pick<ProbedService, 'url'>,
  signal: AbortSignal,
  onBody: (body: string) => void,
): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_API_KEY}` };
  let after = 'now';
  while (!signal.aborted) {
    const query = new URLSearchParams({ after, wait: after === 'now' ? '0' : String(WAIT_SECONDS) });
    const answer = await fetch(`${url}/events/stream?${query.toString()}`, { headers, signal })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined);
    if (answer === undefined) {
      await sleep(PAUSE_MS);
      continue;
    }
    if (answer.status !== 200) throw new Error(`the stream answered ${answer.status}: ${answer.text}`);
    const page = JSON.parse(answer.text) as { events: { body: string }[]; cursor: string };
    after = page.cursor;
    for (const { body } of page.events) onBody(body);
  }
}

/** How much later each event of a mint reaches a client than its webhook. */
async function race(local: LocalSetup, size: Size): Promise<Figures> {
  const [pushed, fetched] = [new Map<string, number>(), new Map<string, number>()];
  const note = (times: Map<string, number>, body: string): void =>
    void times.set((JSON.parse(body) as ServiceEvent).id, performance.now());
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      note(pushed, Buffer.concat(chunks).toString());
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const WEBHOOK_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return await withService(local, { ADMIN_API_KEY, WEBHOOK_URL }, async (service) => {
      await sleep(SETTLE_MS);
      const closing = new AbortController();
      const following = follow(service, closing.signal, (body) => note(fetched, body));
      await sleep(SETTLE_MS);
      const owner = await local.account(1);
      for (let mint = 0; mint < size.of(MINTS); mint++) {
        const [allPushed, allFetched] = [pushed.size + EVENTS_OF_A_MINT, fetched.size + EVENTS_OF_A_MINT];
        await mintDirectly(local, owner);
        await eventually('its events', () => pushed.size >= allPushed && fetched.size >= allFetched);
      }
      closing.abort();
      await following;
      const late = [...fetched].map(([id, at]) => at - (pushed.get(id) ?? NaN)).filter(Number.isFinite);
      return {
        'client after webhook, median, ms': percentile(late, 0.5),
        'client after webhook, most, ms': percentile(late, 1),
      };
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
