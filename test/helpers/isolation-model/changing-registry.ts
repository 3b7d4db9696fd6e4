import type { ChainEvent } from '../../../client/events';
import { systemTime } from '../../../service/base/time';
import type { Database } from '../../../service/database/database';
import { toCloudEvent, type RegistryIdentity } from '../../../service/events/cloud-event';
import { channelsOf } from '../../../service/outbox/channels';
import { claimQueues, type ClaimedDelivery, type ClaimedQueue } from '../../../service/outbox/claim-queues';
import { openFeed, type OpenFeed } from '../../../service/outbox/feeds';
import { purgedUpTo, purgeEvents, restoreEvents } from '../../../service/outbox/purge-events';
import { recordRange } from '../../../service/outbox/record-range';
import { fillChannel } from '../../../service/outbox/enqueue-stored';
import { rewindFeed } from '../../../service/outbox/rewind-feed';
import { takeTurn, type Settlement } from '../../../service/outbox/settle-queues';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import { eventIn } from '../database/sample-feed';
import type { History } from '../scenario';
import type { SeededRandom } from '../seeded-random';

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
  /** The share of attempts that fail; of these, half are the last ones. */
  failing?: number;
  /** Called with each event that is sent. */
  onSent?(this: void, sent: ClaimedDelivery & { subscription: string }): void;
}

/** A registry with its chain, and the process that reads it. */
export class ChangingRegistry {
  /** Block numbers are indexes. */
  readonly #blocks: Block[] = [{ hash: '0x0', events: [] }];
  /** Transactions of blocks that were replaced. */
  #waiting: RegistryEvent[] = [];
  #highest = 0;
  readonly #recorded: RegistryEvent[] = [];
  #made = 0;
  #leases = 0;
  #reader: { database: Database; feed: OpenFeed } | undefined;

  constructor(private readonly parts: RegistryParts) {}

  get #name(): string {
    const { chainId, registryAddress } = this.parts.identity;
    return `${chainId}:${registryAddress}:0123456789abcdef`;
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

  async openIn(database: Database): Promise<void> {
    this.#reader = { database, feed: await openFeed(database.db, this.#name, 1, 1) };
  }

  get #open(): { database: Database; feed: OpenFeed } {
    if (this.#reader === undefined) throw new Error('nobody reads the registry');
    return this.#reader;
  }

  /** Does some of what happens to a feed. */
  async live(now: number): Promise<void> {
    const { random } = this.parts;
    for (let steps = 1 + random.below(3); steps > 0; steps--) {
      if (random.chance(0.3)) await this.#reorganise(now);
      else await this.#grow(1 + random.below(3), now);
      if (random.chance(0.4)) await this.deliver(now);
      if (random.chance(0.2)) await this.#restore(now);
    }
  }

  async purge(before: number): Promise<void> {
    for (let sent = 1; sent > 0;) sent = await this.deliver(before, Infinity);
    const { database } = this.#open;
    this.parts.run.count('events purged', await purgeEvents(systemTime, database, this.#name, before));
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
    await recordRange(database, feed, this.parts.identity, range, now);
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
    const { database, feed } = this.#open;
    // Never further back than this from the highest block so far.
    const room = this.#blocks.length - 1 - Math.max(0, this.#highest - DEPTH);
    if (room <= 0) return;
    const depth = 1 + this.parts.random.below(room);
    const number = this.#blocks.length - 1 - depth;
    const ancestor = { number, hash: this.#blocks[number]?.hash };
    this.#waiting = this.#blocks.splice(number + 1).flatMap(({ events }) => events);
    const rewound = await rewindFeed(database, feed, ancestor, now);
    if (rewound === 'in flight') throw new Error('nothing should be in flight');
    this.parts.run.count('events taken back', this.#waiting.length);
    this.parts.run.note(`${this.#name.slice(0, 12)} back to ${number}`);
    if (this.parts.random.chance(0.8)) await this.#grow(1 + this.parts.random.below(depth + 1), now);
  }

  /** Delivers to the subscriptions. Returns the number of attempts. */
  async deliver(now: number, limit = 1 + this.parts.random.below(3)): Promise<number> {
    const { database } = this.#open;
    let count = 0;
    for (const { channel, subscription } of await channelsOf(database.db, this.#name)) {
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
