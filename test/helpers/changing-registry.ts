import type { ChainEvent } from '../../client/events';
import { systemTime } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { toCloudEvent, type RegistryIdentity } from '../../service/events/cloud-event';
import { channelsOf } from '../../service/outbox/channels';
import { claimQueues, type ClaimedDelivery, type ClaimedQueue } from '../../service/outbox/claim-queues';
import { openFeed, type KeptBlock, type OpenFeed } from '../../service/outbox/feeds';
import { purgedUpTo, purgeEvents } from '../../service/outbox/purge-events';
import { recordRange } from '../../service/outbox/record-range';
import { fillChannel, restoreEvents } from '../../service/outbox/refill';
import { rewindFeed } from '../../service/outbox/rewind-feed';
import { takeTurn, type Settlement } from '../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../service/registry/registry-event';
import { mortalDatabase } from './database/mortal-database';
import { eventIn } from './database/sample-feed';
import type { History } from './scenario';
import type { SeededRandom } from './seeded-random';

const DEPTH = 5;
const MOST_IN_A_BLOCK = 4;

interface Block {
  hash: string;
  events: RegistryEvent[];
}

/** The parts of a registry. */
export interface RegistryParts {
  identity: RegistryIdentity;
  random: SeededRandom;
  run: History;
  /** The part of a new event that says what happened. */
  draw(this: void, number: number): Partial<RegistryEvent>;
  /** The share of turns in which the process that reads is killed, at any statement. */
  killing?: number;
  /** The share of attempts that fail; of these, half are the last ones. */
  failing?: number;
  /** Called with each event that is sent. */
  onSent?(this: void, sent: ClaimedDelivery & { subscription: string }): void;
}

/** A registry with its chain, and the process that reads it: one at a time. */
export class ChangingRegistry {
  /** Block numbers are indexes. */
  readonly #blocks: Block[] = [{ hash: '0x0', events: [] }];
  /** Transactions of blocks that were replaced. */
  #waiting: RegistryEvent[] = [];
  #highest = 0;
  readonly #recorded: RegistryEvent[] = [];
  #made = 0;
  #leases = 0;
  /** The first block that was not recorded. */
  #next = 1;
  /** Undefined after a kill. */
  #reader: { database: Database; feed: OpenFeed } | undefined;

  constructor(private readonly parts: RegistryParts) {}

  get #name(): string {
    const { chainId, registryAddress } = this.parts.identity;
    return `${chainId}:${registryAddress}:0123456789abcdef`;
  }

  get source(): string {
    const { chainId, registryAddress } = this.parts.identity;
    return `urn:service:${chainId}:${registryAddress}`;
  }

  /** The events of its chain. */
  present(): RegistryEvent[] {
    return this.#blocks.flatMap(({ events }) => events);
  }

  /** All that was ever recorded, also of blocks that were replaced. */
  recorded(): readonly RegistryEvent[] {
    return this.#recorded;
  }

  /** The events of its chain, as they are sent. */
  events(): ChainEvent[] {
    return this.present().map((event) => toCloudEvent(event, this.parts.identity) as ChainEvent);
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
    const { random, killing = 0, run } = this.parts;
    if (this.#reader === undefined) await this.openIn(database, now);
    const reader = this.#open;
    const isKilled = killing > 0 && random.chance(killing);
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
      run.count('kills');
      run.note(`${this.#name.slice(0, 12)} killed`);
    }
  }

  async deliverAll(database: Database, now: number): Promise<void> {
    while ((await this.#deliver(database, now, Infinity)) > 0);
  }

  async purge(database: Database, before: number): Promise<void> {
    this.parts.run.count('events purged', await purgeEvents(systemTime, database, this.#name, before));
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
    await recordRange(database, feed, this.parts.identity, range, now);
    this.#next = nextBlock;
    this.#recorded.push(...events);
    this.parts.run.count('events recorded', events.length);
  }

  /** A block with transactions of replaced blocks, and others. */
  #mine(): void {
    const { random, draw } = this.parts;
    const number = this.#blocks.length;
    const hash = random.hex(8);
    const events: RegistryEvent[] = [];
    while (events.length < random.below(MOST_IN_A_BLOCK + 1)) {
      const again = random.chance(0.7) ? this.#waiting.shift() : undefined;
      if (again !== undefined && random.chance(0.2)) continue;
      const place = { blockHash: hash, blockLogIndex: events.length };
      const fresh = { transactionHash: random.hex(32), logIndex: 0 };
      const event = again ?? eventIn(number, 0n, { ...fresh, ...draw(++this.#made) });
      events.push({ ...event, ...place, blockNumber: number, blockTimestamp: 1_750_000_000 + number });
    }
    this.#blocks.push({ hash, events });
    this.#highest = Math.max(this.#highest, number);
  }

  async #reorganise(now: number): Promise<void> {
    const { random, run } = this.parts;
    // Never further back than this from the highest block so far.
    const room = this.#blocks.length - 1 - Math.max(0, this.#highest - DEPTH);
    if (room <= 0) return;
    const depth = 1 + random.below(room);
    const number = this.#blocks.length - 1 - depth;
    this.#waiting = this.#blocks.splice(number + 1).flatMap(({ events }) => events);
    if (this.#next > number + 1) await this.#rewindTo({ number, hash: this.#blocks[number]?.hash }, now);
    run.count('events taken back', this.#waiting.length);
    run.note(`${this.#name.slice(0, 12)} back to ${number}`);
    if (random.chance(0.8)) await this.#grow(1 + random.below(depth + 1), now);
  }

  async #rewindTo(ancestor: KeptBlock, now: number): Promise<void> {
    const { database, feed } = this.#open;
    const rewound = await rewindFeed(database, feed, ancestor, now);
    if (rewound === 'in flight') throw new Error('nothing should be in flight');
    this.#next = ancestor.number + 1;
  }

  /** Delivers to the subscriptions. Returns the number of attempts. */
  async #deliver(database: Database, now: number, limit = 1 + this.parts.random.below(3)): Promise<number> {
    let count = 0;
    for (const { channel, subscription } of await channelsOf(database.db, this.#name)) {
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
      const settlements = queues.map((queue) => this.#settlementOf(queue, now));
      for (const { deliveries } of queues)
        for (const delivery of deliveries) this.parts.onSent?.({ ...delivery, subscription });
      const none = { ...claim, lease: 'none', limit: 0, perQueue: 0, leaseMs: 0 };
      await takeTurn(database, { settlements, claim: none, mayBeDue: true });
      count += queues.reduce((sum, { deliveries }) => sum + deliveries.length, 0);
    }
    return count;
  }

  /** Enqueues the stored events for the subscriptions that began in the past. */
  async fill(now: number): Promise<void> {
    const { database } = this.#open;
    for (const { channel, feed, isFilling } of await channelsOf(database.db, this.#name))
      for (let isLeft = Boolean(isFilling); isLeft;) {
        const filled = await fillChannel(database, { feed, channel }, now);
        if (typeof filled === 'object') await this.#restore(now);
        isLeft = filled !== 'filled';
      }
  }

  /** A failure ends the attempts of a queue. */
  #settlementOf(queue: ClaimedQueue, now: number): Settlement {
    const { random, failing = 0 } = this.parts;
    const attempt = { attemptedAt: now, milliseconds: 1, status: 200, error: undefined };
    const all = queue.deliveries.map((delivery) => ({ delivery, attempt }));
    if (failing === 0 || !random.chance(failing)) return { queue, delivered: all };
    const delivered = all.slice(0, random.below(all.length));
    const { delivery } = all[delivered.length] as (typeof all)[number];
    const failed = { ...attempt, status: 500, error: 'answered 500' };
    const nextAttemptAt = random.chance(0.5) ? now : undefined;
    return { queue, delivered, failed: { delivery, attempt: failed, nextAttemptAt } };
  }

  async #restore(now: number): Promise<void> {
    const { database, feed } = this.#open;
    const toBlock = await purgedUpTo(database.db, this.#name);
    if (toBlock === undefined) return;
    const events = this.#blocks.slice(0, toBlock + 1).flatMap((block) => block.events);
    await restoreEvents(database, feed.id, this.parts.identity, { events, fromBlock: 0, toBlock }, now);
    this.parts.run.count('restored');
  }
}
