import type { ChainEvent } from '../../../client/events';
import { systemTime } from '../../../service/base/time';
import type { Database } from '../../../service/database/database';
import { toCloudEvent } from '../../../service/events/cloud-event';
import { channelsOf } from '../../../service/outbox/channels';
import { claimQueues } from '../../../service/outbox/claim-queues';
import { openFeed, type KeptBlock, type OpenFeed } from '../../../service/outbox/feeds';
import { purgedUpTo, purgeEvents, restoreEvents } from '../../../service/outbox/purge-events';
import { recordRange } from '../../../service/outbox/record-range';
import { rewindFeed } from '../../../service/outbox/rewind-feed';
import { takeTurn } from '../../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { eventIn } from '../database/sample-feed';
import { newState, openState, removeRows, type Engine, type State } from '../database/engines';
import { mortalDatabase } from '../database/mortal-database';
import { addSubscription } from '../database/subscriber';
import { stopLater } from '../resources';
import { History, type Place } from '../scenario';
import { seededRandom, type SeededRandom } from '../seeded-random';
import { TYPES } from '../live-change/rule';
import { FetchingClient } from './fetching-client';
import { SubscribedRule } from './subscribed-rule';

// A model test of clients that fetch events. Two registries grow, are reorganised, delivered to
// subscriptions, purged and restored, each by one process at a time: on PostgreSQL by either of two. A
// process is killed at any statement, and the next one goes on from what is stored. Clients fetch meanwhile
// from either process, stop, and go on with any earlier cursor, some by the rules of a subscription, which
// are replaced between two pages. Purges run between the pages, and beside them.
//
// At the end, what holds of each token for a client with retractions must be what the chain has, in its
// order; one without must have every event once. Each page must have just the events between its two cursors
// that its rules select. A cursor may expire only if events after it were purged.

const DEPTH = 5;
const TOKENS = [0n, 7n, 8n];
const RETRACTING = '0192f3c8-5a00-7000-8000-000000000001';
/** Of them, the first is without retractions. */
const SELECTING = [2, 3, 4].map((number) => `0192f3c8-5a00-7000-8000-00000000000${number}`);
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
    for (const registry of registries) await registry.openIn(one(), 0);
    const clients = [true, true, false].map(
      (hasRetractions) => new FetchingClient({ hasRetractions }, nextRandom(), run),
    );
    const late = new FetchingClient({ hasRetractions: true }, nextRandom(), run);
    const selecting: FetchingClient[] = [];
    for (const [index, name] of SELECTING.entries()) {
      const hasRetractions = index > 0;
      const sources = registries.map(({ source }) => source);
      const rule = new SubscribedRule({ name, hasRetractions }, TOKENS, sources, nextRandom());
      await rule.add(one());
      selecting.push(new FetchingClient({ hasRetractions, rule }, nextRandom(), run));
    }
    const rounds = FEWEST_ROUNDS + random.below(MOST_ROUNDS - FEWEST_ROUNDS);
    for (let now = 1; now <= rounds; now++) {
      const isPurged = random.chance(0.2);
      if (isPurged) {
        // Those that must not lose events have all that are purged.
        for (const client of clients) await client.catchUp(one());
        for (const registry of registries) await registry.deliverAll(one(), now);
      }
      await Promise.all([
        ...registries.map((registry) => registry.live(one(), now)),
        ...[...clients, ...selecting].map((client) => client.live(one(), one())),
        ...(isPurged ? registries.map((registry) => registry.purge(one(), now)) : []),
      ]);
      if (random.chance(0.1)) {
        run.note('restart');
        for (const database of databases) await database.close();
        databases = await open();
        for (const registry of registries) await registry.openIn(one(), now);
      } else if (random.chance(0.2)) await random.pick(registries).openIn(one(), now);
      if (random.chance(0.15)) {
        // They keep no cursor from before it.
        for (const client of clients) await client.catchUp(one());
        if (random.chance(0.5)) await late.catchUp(one());
        for (const registry of registries) {
          await registry.deliverAll(one(), now + 1);
          await registry.purge(one(), now + 1);
        }
      }
    }
    for (const registry of registries) await registry.readAll(one(), rounds);
    for (const client of [...clients, ...selecting, late]) await client.catchUp(one());
    const due = registries.flatMap((registry) => registry.events());
    for (const client of clients) client.compareWith(due);
    const [complete, , withoutRetractions] = clients as [FetchingClient, FetchingClient, FetchingClient];
    late.compareWithEndOf(complete);
    for (const [index, client] of selecting.entries())
      client.comparePagesWith(index > 0 ? complete : withoutRetractions);
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
  /** The first block that was not recorded. */
  #next = 1;
  /** Undefined after a kill. */
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

  get source(): string {
    return `urn:service:31337:${this.address}`;
  }

  /** The events of its chain, as they are sent. */
  events(): ChainEvent[] {
    const events = this.#blocks.flatMap(({ events }) => events);
    return events.map((event) => toCloudEvent(event, this.#identity) as ChainEvent);
  }

  /** Begins to read as a process does: after the newest kept block that is still on the chain. */
  async openIn(database: Database, now: number): Promise<void> {
    const feed = await openFeed(database.db, this.#name, 1, 1);
    this.#reader = { database, feed };
    const { nextBlock, kept } = feed.cursor;
    const isOnChain = ({ number, hash }: KeptBlock): boolean =>
      hash === undefined || this.#blocks[number]?.hash === hash;
    const ancestor = kept.findLast(isOnChain);
    if (ancestor === undefined) throw new Error('a reorganisation is too deep');
    this.#next = ancestor.number + 1;
    if (this.#next < nextBlock) await this.#rewindTo(ancestor, now);
  }

  /** Records all that the chain has. */
  async readAll(database: Database, now: number): Promise<void> {
    if (this.#reader === undefined) await this.openIn(database, now);
    await this.#read(now);
  }

  get #open(): { database: Database; feed: OpenFeed } {
    if (this.#reader === undefined) throw new Error('nobody reads the registry');
    return this.#reader;
  }

  /** Does some of what happens to a feed. The process may be killed meanwhile. */
  async live(database: Database, now: number): Promise<void> {
    const { random } = this;
    if (this.#reader === undefined) await this.openIn(database, now);
    const reader = this.#open;
    const isKilled = random.chance(0.2);
    const mortal = mortalDatabase(reader.database, isKilled ? 1 + random.below(60) : Infinity);
    this.#reader = { ...reader, database: mortal.database };
    try {
      for (let steps = 1 + random.below(3); steps > 0; steps--) {
        if (random.chance(0.3)) await this.#reorganise(now);
        else await this.#grow(1 + random.below(3), now);
        if (random.chance(0.4)) await this.#deliver(mortal.database, now);
        if (random.chance(0.2)) await this.#restore(now);
      }
      this.#reader = reader;
    } catch (error) {
      if (!mortal.isDead()) throw error;
      this.#reader = undefined;
      this.run.count('kills');
      this.run.note(`${this.address.slice(0, 4)} killed`);
    }
  }

  async deliverAll(database: Database, now: number): Promise<void> {
    while ((await this.#deliver(database, now, Infinity)) > 0);
  }

  async purge(database: Database, before: number): Promise<void> {
    this.run.count('events purged', await purgeEvents(systemTime, database, this.#name, before));
  }

  async #grow(blocks: number, now: number): Promise<void> {
    for (let block = 0; block < blocks; block++) this.#mine();
    await this.#read(now);
  }

  async #read(now: number): Promise<void> {
    const { database, feed } = this.#open;
    const first = this.#next;
    const grown = this.#blocks.slice(first);
    const kept = grown.map(({ hash }, index) => ({ number: first + index, hash }));
    const nextBlock = this.#blocks.length;
    const events = grown.flatMap((block) => block.events);
    const range = { events, blocks: kept, oldestKept: this.#highest - DEPTH, nextBlock };
    await recordRange(database, feed, this.#identity, range, now);
    this.#next = nextBlock;
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
        type: random.pick(TYPES),
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
    // Never further back than this from the highest block so far.
    const room = this.#blocks.length - 1 - Math.max(0, this.#highest - DEPTH);
    if (room <= 0) return;
    const depth = 1 + this.random.below(room);
    const number = this.#blocks.length - 1 - depth;
    this.#waiting = this.#blocks.splice(number + 1).flatMap(({ events }) => events);
    if (this.#next > number + 1) await this.#rewindTo({ number, hash: this.#blocks[number]?.hash }, now);
    this.run.count('events taken back', this.#waiting.length);
    this.run.note(`${this.address.slice(0, 4)} back to ${number}`);
    if (this.random.chance(0.8)) await this.#grow(1 + this.random.below(depth + 1), now);
  }

  async #rewindTo(ancestor: KeptBlock, now: number): Promise<void> {
    const { database, feed } = this.#open;
    const rewound = await rewindFeed(database, feed, ancestor, now);
    if (rewound === 'in flight') throw new Error('nothing should be in flight');
    this.#next = ancestor.number + 1;
  }

  /** Delivers to the subscriptions. Returns the number of deliveries. */
  async #deliver(database: Database, now: number, limit = 1 + this.random.below(3)): Promise<number> {
    let count = 0;
    for (const { channel } of await channelsOf(database.db, this.#name)) {
      const most = Math.min(limit, 100);
      const claim = {
        channel,
        lease: `lease ${++this.#leases}`,
        limit: most,
        perQueue: most,
        now,
        // So that another process need not wait for those of a killed one.
        leaseMs: 0,
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
