/**
 * Tracks the wallet's nonces. A node's count includes transactions that others sent with this wallet, but a
 * node may be behind. The queue therefore combines that count with the nonces that it gave itself.
 */
export class Nonces {
  /** Nonces below this one are used; the highest value that any node has reported. */
  floor = 0;
  /** When the floor last rose, by `performance.now()`. */
  roseAt = performance.now();
  /** Counts how often all nonces were forgotten. */
  epoch = 0;
  /** Given, but not yet signed and kept in the journal. */
  readonly #given = new Set<number>();
  /** Given and taken back. Transactions with higher nonces cannot be mined before these are used. */
  readonly #freed = new Set<number>();
  /** When nodes began to count less than the floor. */
  #lowSince: number | undefined;

  /** Takes a node's count of the wallet's transactions into account. `latest`: it counts mined ones only. */
  note(count: number, latest = false): void {
    if (count < this.floor) {
      this.#lowSince ??= performance.now();
      return;
    }
    this.#lowSince = undefined;
    if (latest) this.raise(count);
  }

  /** Nonces below `used` are used, as a node says. */
  raise(used: number): void {
    if (used <= this.floor) return;
    this.floor = used;
    this.roseAt = performance.now();
    for (const nonce of this.#freed) if (nonce < used) this.#freed.delete(nonce);
  }

  /** Milliseconds for which nodes have counted less than the floor. */
  lowForMs(): number {
    return this.#lowSince === undefined ? 0 : performance.now() - this.#lowSince;
  }

  /**
   * Gives the next nonces to sign with. Nonces that were taken back come first.
   *
   * @param pending the node's count, including transactions in its pool.
   * @param highestHeld the highest nonce of a transaction that is signed.
   */
  give(count: number, pending: number, highestHeld = -1): number[] {
    const lowest = Math.max(this.floor, pending);
    for (const nonce of this.#freed) if (nonce < pending) this.#freed.delete(nonce);
    const next = Math.max(lowest, highestHeld + 1, ...[...this.#given].map((nonce) => nonce + 1));
    const holes = [...this.#freed].filter((nonce) => nonce >= lowest && nonce < next).sort((a, b) => a - b);
    const given = holes.slice(0, count);
    for (let nonce = next; given.length < count; nonce++) given.push(nonce);
    for (const nonce of given) {
      this.#given.add(nonce);
      this.#freed.delete(nonce);
    }
    return given;
  }

  /** Ends the giving of these nonces: their transactions are kept in the journal, or will never be. */
  settle(nonces: readonly number[]): void {
    for (const nonce of nonces) this.#given.delete(nonce);
  }

  isGiven(nonce: number): boolean {
    return this.#given.has(nonce);
  }

  /** Takes a nonce back that no transaction will use. */
  free(nonce: number): void {
    if (nonce >= this.floor) this.#freed.add(nonce);
  }

  /** A nonce that was taken back is used after all. */
  take(nonce: number): void {
    this.#freed.delete(nonce);
  }

  lowestFreed(): number | undefined {
    return this.#freed.size === 0 ? undefined : Math.min(...this.#freed);
  }

  /** The chain, or its pool of transactions, is gone: nonces from `count` on are free. */
  reset(count: number): void {
    this.epoch++;
    this.floor = count;
    this.#lowSince = undefined;
    this.roseAt = performance.now();
    this.#freed.clear();
  }
}
