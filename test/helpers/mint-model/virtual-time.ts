import timersPromises from 'node:timers/promises';
import type { Time } from '../../../service/base/clock';
import type { SeededRandom } from '../seeded-random';

/** Work that is due at a time. */
interface Due {
  at: number;
  /** The order of work that is due at the same time. */
  order: number;
  work: () => unknown;
}

/** Longer than any real work takes: after this time, an end was forgotten. */
const HANGS_AFTER_MS = 60_000;
/** The longest wait of a test, in virtual time. */
const LONGEST_MS = 3_600_000;

/**
 * Virtual time. It stands still while real work is running, and then jumps to the next work that is due.
 * Seconds of pauses pass in milliseconds, and the order of events does not depend on the machine. The whole
 * process uses it while it rules: timers, `performance.now()` and seeded random numbers.
 *
 * Real work (requests over sockets, statements of a database) must be marked with `real`, or with `begin` and
 * `end`.
 */
export class VirtualTime implements Time {
  /** Called whenever no real work is running, before time goes on. */
  onQuiet: () => void = () => undefined;
  #now = 0;
  #order = 0;
  readonly #due = new Set<Due>();
  #underWay = 0;
  #begun = 0;
  #ended: () => void = () => undefined;
  readonly #realSetTimeout = globalThis.setTimeout;
  readonly #realClearTimeout = globalThis.clearTimeout;

  /** Virtual milliseconds since the beginning. */
  now(): number {
    return this.#now;
  }

  /** Marks the beginning of real work; `end` marks its end. */
  begin(): void {
    this.#underWay++;
    this.#begun++;
  }

  end(): void {
    if (--this.#underWay === 0) this.#ended();
  }

  /** Waits for real work, for which time stands still. */
  async real<T>(work: Promise<T>): Promise<T> {
    this.begin();
    try {
      return await work;
    } finally {
      this.end();
    }
  }

  /** Does not start at 0, which code may use for "long ago". */
  elapsed(): number {
    return 1_000_000 + this.#now;
  }

  later(ms: number, work: () => void): () => void {
    const due = this.#at(ms, work);
    return () => void this.#due.delete(due);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#at(ms, resolve));
  }

  /** Rules while a scenario plays. */
  async during(random: SeededRandom, play: () => Promise<void>): Promise<void> {
    const release = this.#rule(random);
    let isOver = false;
    const played = play().finally(() => (isOver = true));
    await Promise.race([this.#passUntil(() => isOver), played])
      .then(() => played)
      .finally(release);
  }

  /** Lets time pass until `isOver`, which is called after every piece of work. */
  async #passUntil(isOver: () => boolean): Promise<void> {
    for (;;) {
      await this.#untilQuiet();
      if (isOver()) return;
      this.#step();
    }
  }

  /** Lets time pass until there is a value other than undefined and false. Without work it stands still. */
  async until<T>(what: string, probe: () => T | Promise<T>, withinMs = LONGEST_MS): Promise<NonNullable<T>> {
    const end = this.#now + withinMs;
    for (;;) {
      await this.#untilQuiet();
      const value = await probe();
      if (value !== undefined && value !== false && value !== null) return value;
      if (this.#now > end) throw new Error(`did not happen within ${withinMs} ms: ${what}`);
      this.#step();
    }
  }

  /** Lets time pass until the promise is settled, and returns its value. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const note = (): void => void (isSettled = true);
    promise.then(note, note);
    await this.until('a promise is settled', () => isSettled);
    return promise;
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    await this.settled(this.sleep(ms));
  }

  #step(): void {
    const next = [...this.#due].reduce<Due | undefined>(earlier, undefined);
    if (next === undefined) throw new Error('nothing will ever happen again');
    this.#due.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.work();
  }

  /** Makes the process use this time; the result undoes it. */
  #rule(random: SeededRandom): () => void {
    const { setTimeout, clearTimeout } = globalThis;
    const { setTimeout: sleep } = timersPromises;
    const real = { performance: Object.getOwnPropertyDescriptor(performance, 'now'), random: Math.random };
    const later = (work: (...given: unknown[]) => unknown, ms = 0, ...given: unknown[]): VirtualTimer =>
      new VirtualTimer(() => this.#at(ms, () => work(...given)), this.#due);
    const cancel = (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.close();
      else clearTimeout(timer as NodeJS.Timeout);
    };
    globalThis.setTimeout = later as unknown as typeof setTimeout;
    globalThis.clearTimeout = cancel;
    Object.assign(timersPromises, {
      setTimeout: (ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
        new Promise((resolve, reject) => {
          signal?.throwIfAborted();
          const due = this.#at(ms, () => resolve(value));
          const abort = (): void => {
            this.#due.delete(due);
            reject(signal?.reason as Error);
          };
          signal?.addEventListener('abort', abort, { once: true });
        }),
    });
    Object.defineProperty(performance, 'now', { configurable: true, value: () => this.elapsed() });
    Math.random = () => random.fraction();
    return () => {
      globalThis.setTimeout = setTimeout;
      globalThis.clearTimeout = clearTimeout;
      Object.assign(timersPromises, { setTimeout: sleep });
      if (real.performance) Object.defineProperty(performance, 'now', real.performance);
      else delete (performance as { now?: unknown }).now;
      Math.random = real.random;
    };
  }

  #at(ms: number, work: () => unknown): Due {
    const due = { at: this.#now + Math.max(ms, 0), order: this.#order++, work };
    this.#due.add(due);
    return due;
  }

  /** Waits until no real work is running, and the work that just ended has begun no more. */
  async #untilQuiet(): Promise<void> {
    for (;;) {
      if (this.#underWay > 0) await this.#untilEnded();
      const { begun, order } = { begun: this.#begun, order: this.#order };
      await nextTurn();
      if (this.#underWay > 0) continue;
      this.onQuiet();
      await nextTurn();
      if (this.#underWay === 0 && this.#begun === begun && this.#order === order) return;
    }
  }

  async #untilEnded(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const hangs = (): void => reject(new Error(`${this.#underWay} things hang`));
      const timer = this.#realSetTimeout(hangs, HANGS_AFTER_MS);
      this.#ended = () => {
        this.#realClearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The result of `setTimeout`. */
class VirtualTimer {
  #due: Due;
  readonly #begin: () => Due;
  readonly #all: Set<Due>;

  constructor(begin: () => Due, all: Set<Due>) {
    this.#begin = begin;
    this.#due = begin();
    this.#all = all;
  }

  refresh(): this {
    this.#all.delete(this.#due);
    this.#due = this.#begin();
    return this;
  }

  close(): this {
    this.#all.delete(this.#due);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

function earlier(one: Due | undefined, other: Due): Due {
  if (one === undefined) return other;
  return other.at < one.at || (other.at === one.at && other.order < one.order) ? other : one;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
