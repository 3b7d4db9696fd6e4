/**
 * What is known of the wallet's nonces. A node's count has what others sent with this wallet, and is behind
 * when a provider answers from a node that is; so what the queue knows counts as well.
 */
export class Nonces {
  /** Nonces below are used, as far as any node ever said. */
  floor = 0;
  /** When the floor last rose, by `performance.now()`. */
  roseAt = performance.now();
  /** Counts how often all nonces were forgotten. */
  epoch = 0;
  /** Given, and not signed and kept yet. */
  readonly #given = new Set<number>();
  /** Given and taken back. Transactions with higher nonces wait for them. */
  readonly #freed = new Set<number>();
  /** Since when nodes count less than the floor. */
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

  /** Nonces below are used: a node says so. */
  raise(used: number): void {
    if (used <= this.floor) return;
    this.floor = used;
    this.roseAt = performance.now();
    for (const nonce of this.#freed) if (nonce < used) this.#freed.delete(nonce);
  }

  /** Milliseconds for which nodes have counted less than they did before. */
  lowForMs(): number {
    return this.#lowSince === undefined ? 0 : performance.now() - this.#lowSince;
  }

  /**
   * The next nonces to sign with, in order. What was taken back is given first.
   *
   * @param pending the node's count, with transactions that wait.
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

  /** Transactions with these nonces are signed and kept, or will not be. */
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

  /** The chain, or what waited for it, is gone: nonces from `count` on are free. */
  reset(count: number): void {
    this.epoch++;
    this.floor = count;
    this.#lowSince = undefined;
    this.roseAt = performance.now();
    this.#freed.clear();
  }
}
