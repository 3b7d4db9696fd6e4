import type { ChainEvent } from '../../../client/events';
import { systemTime } from '../../../service/base/time';
import type { Database } from '../../../service/database/database';
import { toCloudEvent } from '../../../service/events/cloud-event';
import { channelsOf } from '../../../service/outbox/channels';
import { claimQueues } from '../../../service/outbox/claim-queues';
import { openFeed, type OpenFeed } from '../../../service/outbox/feeds';
import { purgedUpTo, purgeEvents } from '../../../service/outbox/purge-events';
import { recordRange } from '../../../service/outbox/record-range';
import { restoreEvents } from '../../../service/outbox/refill';
import { rewindFeed } from '../../../service/outbox/rewind-feed';
import { takeTurn } from '../../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { eventIn } from '../database/sample-feed';
import { newState, openState, removeRows, type Engine, type State } from '../database/engines';
import { addSubscription } from '../database/subscriber';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { FetchingClient } from './fetching-client';

// A model test of clients that fetch events. Two registries grow, are reorganised, delivered to
// subscriptions, purged and restored, each by one process at a time: on PostgreSQL by either of two. Clients
// fetch meanwhile from either process, stop, and go on with any earlier cursor. At the end, what holds of
// each token for a client with retractions must be what the chain has, in its order; one without must have
// every event once.

const DEPTH = 5;
const TOKENS = [0n, 7n, 8n];
const RETRACTING = '0192f3c8-5a00-7000-8000-000000000001';
const FEWEST_ROUNDS = 8;
const MOST_ROUNDS = 25;
const MOST_IN_A_BLOCK = 4;

/** Undefined if the engine is not installed. */
export async function createFetchPlace(engine: Engine): Promise<Place | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  stopLater('the state of the model', () => state[Symbol.asyncDispose]());
  return {
    async run(seed) {
      const history = new History(seed);
      const database = await openState(state);
      await removeRows(database, engine);
      await database.close();
      return await history.of(runOnce(history, state, engine === 'SQLite' ? 1 : 2));
    },
  };
}

async function runOnce(run: History, state: State, replicas: number): Promise<void> {
  let drawn = 0;
  const nextRandom = (): SeededRandom => seededRandom(run.seed * 16 + drawn++);
  const random = nextRandom();
  const open = () => Promise.all(Array.from({ length: replicas }, () => openState(state)));
  let databases = await open();
  const one = (): Database => random.pick(databases);
  try {
    await addSubscription(one(), { config: { retractions: true } }, RETRACTING);
    const registries = ['11', '22'].map((byte) => new Registry(`0x${byte.repeat(20)}`, nextRandom(), run));
    for (const registry of registries) await registry.openIn(one());
    const clients = [true, true, false].map(
      (hasRetractions) => new FetchingClient({ hasRetractions }, nextRandom(), run),
    );
    const late = new FetchingClient({ hasRetractions: true }, nextRandom(), run);
    const rounds = FEWEST_ROUNDS + random.below(MOST_ROUNDS - FEWEST_ROUNDS);
    for (let now = 1; now <= rounds; now++) {
      await Promise.all([
        ...registries.map((registry) => registry.live(now)),
        ...clients.map((client) => client.live(one())),
      ]);
      if (random.chance(0.1)) {
        run.note('restart');
        for (const database of databases) await database.close();
        databases = await open();
        for (const registry of registries) await registry.openIn(one());
      } else if (random.chance(0.2)) await random.pick(registries).openIn(one());
      if (random.chance(0.15)) {
        // They keep no cursor from before it.
        for (const client of clients) await client.catchUp(one());
        if (random.chance(0.5)) await late.catchUp(one());
        for (const registry of registries) await registry.purge(now + 1);
      }
    }
    for (const client of [...clients, late]) await client.catchUp(one());
    const due = registries.flatMap((registry) => registry.events());
    for (const client of clients) client.compareWith(due);
    late.compareWithEndOf(clients[0] as FetchingClient);
  } finally {
    for (const database of databases) await database.close();
  }
}

interface Block {
  hash: string;
  events: RegistryEvent[];
}

/** A registry with its chain, and the process that reads it. */
class Registry {
  /** Block numbers are indexes. */
  readonly #blocks: Block[] = [{ hash: '0x0', events: [] }];
  /** Transactions of blocks that were replaced. */
  #waiting: RegistryEvent[] = [];
  #highest = 0;
  #made = 0;
  #leases = 0;
  #reader: { database: Database; feed: OpenFeed } | undefined;

  constructor(
    private readonly address: string,
    private readonly random: SeededRandom,
    private readonly run: History,
  ) {}

  get #name(): string {
    return `31337:${this.address}:0123456789abcdef`;
  }

  get #identity() {
    return { chainKey: 'hardhat', chainId: 31337, registryAddress: this.address };
  }

  /** The events of its chain, as they are sent. */
  events(): ChainEvent[] {
    const events = this.#blocks.flatMap(({ events }) => events);
    return events.map((event) => toCloudEvent(event, this.#identity) as ChainEvent);
  }

  async openIn(database: Database): Promise<void> {
    this.#reader = { database, feed: await openFeed(database.db, this.#name, 1, 1) };
  }

  get #open(): { database: Database; feed: OpenFeed } {
    if (this.#reader === undefined) throw new Error('nobody reads the registry');
    return this.#reader;
  }

  /** Does some of what happens to a feed. */
  async live(now: number): Promise<void> {
    const { random } = this;
    for (let steps = 1 + random.below(3); steps > 0; steps--) {
      if (random.chance(0.3)) await this.#reorganise(now);
      else await this.#grow(1 + random.below(3), now);
      if (random.chance(0.4)) await this.#deliver(now);
      if (random.chance(0.2)) await this.#restore(now);
    }
  }

  async purge(before: number): Promise<void> {
    for (let delivered = 1; delivered > 0;) delivered = await this.#deliver(before, Infinity);
    const { database } = this.#open;
    this.run.count('events purged', await purgeEvents(systemTime, database, this.#name, before));
  }

  async #grow(blocks: number, now: number): Promise<void> {
    const { database, feed } = this.#open;
    const first = this.#blocks.length;
    for (let block = 0; block < blocks; block++) this.#mine();
    const grown = this.#blocks.slice(first);
    const kept = grown.map(({ hash }, index) => ({ number: first + index, hash }));
    const nextBlock = this.#blocks.length;
    const events = grown.flatMap((block) => block.events);
    const range = { events, blocks: kept, oldestKept: this.#highest - DEPTH, nextBlock };
    await recordRange(database, feed, this.#identity, range, now);
    this.run.count('events recorded', events.length);
  }

  /** A block with transactions of replaced blocks, and others. */
  #mine(): void {
    const { random } = this;
    const number = this.#blocks.length;
    const hash = random.hex(8);
    const events: RegistryEvent[] = [];
    while (events.length < random.below(MOST_IN_A_BLOCK + 1)) {
      const again = random.chance(0.7) ? this.#waiting.shift() : undefined;
      if (again !== undefined && random.chance(0.2)) continue;
      const fresh = {
        transactionHash: random.hex(32),
        payload: { remark: `0x${++this.#made}` },
        logIndex: 0,
      };
      const place = { blockHash: hash, blockLogIndex: events.length };
      const event = again ?? eventIn(number, random.pick(TOKENS), fresh);
      events.push({ ...event, ...place, blockNumber: number, blockTimestamp: 1_750_000_000 + number });
    }
    this.#blocks.push({ hash, events });
    this.#highest = Math.max(this.#highest, number);
  }

  async #reorganise(now: number): Promise<void> {
    const { database, feed } = this.#open;
    // Never further back than this from the highest block so far.
    const room = this.#blocks.length - 1 - Math.max(0, this.#highest - DEPTH);
    if (room <= 0) return;
    const depth = 1 + this.random.below(room);
    const number = this.#blocks.length - 1 - depth;
    const ancestor = { number, hash: this.#blocks[number]?.hash };
    this.#waiting = this.#blocks.splice(number + 1).flatMap(({ events }) => events);
    const rewound = await rewindFeed(database, feed, ancestor, now);
    if (rewound === 'in flight') throw new Error('nothing should be in flight');
    this.run.count('events taken back', this.#waiting.length);
    this.run.note(`${this.address.slice(0, 4)} back to ${number}`);
    if (this.random.chance(0.8)) await this.#grow(1 + this.random.below(depth + 1), now);
  }

  /** Delivers to the subscriptions. Returns the number of deliveries. */
  async #deliver(now: number, limit = 1 + this.random.below(3)): Promise<number> {
    const { database } = this.#open;
    let count = 0;
    for (const { channel } of await channelsOf(database.db, this.#name)) {
      const most = Math.min(limit, 100);
      const claim = {
        channel,
        lease: `lease ${++this.#leases}`,
        limit: most,
        perQueue: most,
        now,
        leaseMs: 1_000,
      };
      const queues = await claimQueues(database.db, claim);
      const attempt = { attemptedAt: now, milliseconds: 1, status: 200, error: undefined };
      const settlements = queues.map((queue) => ({
        queue,
        delivered: queue.deliveries.map((delivery) => ({ delivery, attempt })),
      }));
      const none = { ...claim, lease: 'none', limit: 0, perQueue: 0, leaseMs: 0 };
      await takeTurn(database, { settlements, claim: none, mayBeDue: true });
      count += queues.reduce((sum, { deliveries }) => sum + deliveries.length, 0);
    }
    return count;
  }

  async #restore(now: number): Promise<void> {
    const { database, feed } = this.#open;
    const toBlock = await purgedUpTo(database.db, this.#name);
    if (toBlock === undefined) return;
    const events = this.#blocks.slice(0, toBlock + 1).flatMap((block) => block.events);
    await restoreEvents(database, feed.id, this.#identity, { events, fromBlock: 0, toBlock }, now);
    this.run.count('restored');
  }
}
