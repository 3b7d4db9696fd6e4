import type { Time } from '../base/time';
import type { Rpc } from '../chain/node';

/** Each allowed query of the whole limit lets it grow by this factor. */
const GROWTH = 1.25;
/** After a refused growth, so many more queries must be allowed first, up to the maximum. */
const MORE_PATIENCE = 2;
const MOST_PATIENCE = 256;
/** How long nothing is asked for after one alone was refused, at first and at most. */
const FIRST_CLOSED_MS = 30_000;
const LONGEST_CLOSED_MS = 600_000;

/**
 * How much of something a node allows in one query: blocks, or addresses. It is learned from the refusals,
 * and grows again slowly.
 */
export class LearnedLimit {
  #value: number;
  /** The largest amount that was allowed. */
  #good = 0;
  /** Allowed queries of the whole limit since it changed, and how many of them let it grow. */
  #allowed = 0;
  #patience = 1;
  #closedUntil = -Infinity;
  #closedMs = FIRST_CLOSED_MS;

  constructor(
    private readonly time: Time,
    private readonly most: number,
  ) {
    this.#value = most;
  }

  /** 0 while nothing is asked for, because one alone was refused. */
  get value(): number {
    return this.isClosed ? 0 : this.#value;
  }

  get isClosed(): boolean {
    return this.time.elapsed() < this.#closedUntil;
  }

  /** Whether this amount was allowed. */
  allows(amount: number): boolean {
    return amount <= this.#good;
  }

  /** Notes that a query for this amount was answered. */
  allowed(amount: number): void {
    this.open();
    this.#closedMs = FIRST_CLOSED_MS;
    if (amount > this.#good) this.#patience = 1;
    this.#good = Math.max(this.#good, amount);
    if (amount < this.#value || ++this.#allowed < this.#patience) return;
    this.#allowed = 0;
    this.#value = Math.min(this.most, Math.ceil(this.#value * GROWTH));
  }

  /** Notes that a query for this amount was refused. The next one asks for that part of it. */
  refused(amount: number, part = 0.5): void {
    if (amount <= 1) return this.#close();
    // Queries that were sent together are refused together.
    if (amount > this.#value) return;
    const isGrown = amount <= Math.ceil(this.#good * GROWTH) && amount > this.#good;
    if (isGrown) this.#patience = Math.min(this.#patience * MORE_PATIENCE, MOST_PATIENCE);
    this.#value = isGrown ? this.#good : Math.max(1, Math.floor(amount * part));
    this.#good = Math.min(this.#good, this.#value);
    this.#allowed = 0;
  }

  /** One alone may be asked for again. */
  open(): void {
    this.#closedUntil = -Infinity;
  }

  #close(): void {
    if (this.isClosed) return;
    this.#value = 1;
    this.#closedUntil = this.time.elapsed() + this.#closedMs;
    this.#closedMs = Math.min(this.#closedMs * 2, LONGEST_CLOSED_MS);
  }
}

/** The kinds of queries, which nodes limit in different ways. */
export type Kind = 'own' | 'topics' | 'escrows' | 'mints';

/** Blocks and addresses that are asked for in one query until the node refuses. */
const MOST_BLOCKS = 10_000;
const MOST_ADDRESSES = 1_000;

/** The limits that a node was found to have. */
export class NodeLimits {
  readonly own: LearnedLimit;
  readonly topics: LearnedLimit;
  readonly escrows: LearnedLimit;
  readonly mints: LearnedLimit;
  readonly addresses: LearnedLimit;
  /** Queries by a block's hash (EIP-234). */
  readonly hashes: LearnedLimit;
  /** The last refusal of a query, as a clause about the node. */
  lastRefusal: string | undefined;
  /** The block of which a query failed in another way than by an answer of the node, the last time. */
  readonly failed = new Map<Kind, number>();
  /** Since when every query was denied, by `elapsed()`. */
  readonly deniedSince = new Map<Kind, number>();

  private constructor({ time }: Rpc) {
    const limit = (most: number): LearnedLimit => new LearnedLimit(time, most);
    [this.own, this.topics] = [limit(MOST_BLOCKS), limit(MOST_BLOCKS)];
    [this.escrows, this.mints] = [limit(MOST_BLOCKS), limit(MOST_BLOCKS)];
    [this.addresses, this.hashes] = [limit(MOST_ADDRESSES), limit(1)];
  }

  /** The limits of a node are kept as long as its client. */
  static of(node: Rpc): NodeLimits {
    const known = NodeLimits.#known.get(node) ?? new NodeLimits(node);
    NodeLimits.#known.set(node, known);
    return known;
  }

  static readonly #known = new WeakMap<Rpc, NodeLimits>();
}
