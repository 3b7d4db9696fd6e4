import timersPromises from 'node:timers/promises';
import type { SeededRandom } from '../seeded-random';

/** What is to be done at a time. */
interface Due {
  at: number;
  /** Of what is due at the same time, the first comes first. */
  order: number;
  work: () => unknown;
}

/** Longer than anything real takes: what is still under way then was forgotten. */
const HANGS_AFTER_MS = 60_000;

/**
 * Time that stands still while anything real is under way, and then jumps to what is due next. Seconds of
 * pauses pass in milliseconds, and the same things happen in the same order whatever else the machine does.
 * All of the process has this time while it runs: timers, `performance.now()`, and random numbers, which a
 * seed repeats.
 *
 * What is real (requests over sockets, statements of a database) must be told by `real`, or by `begin` and
 * `end`.
 */
export class VirtualTime {
  /** Called whenever nothing real is under way, before time goes on. */
  onQuiet: () => void = () => undefined;
  #now = 0;
  #order = 0;
  readonly #due = new Set<Due>();
  #underWay = 0;
  #begun = 0;
  #ended: () => void = () => undefined;
  readonly #realSetTimeout = globalThis.setTimeout;
  readonly #realClearTimeout = globalThis.clearTimeout;

  /** Milliseconds since its beginning. */
  now(): number {
    return this.#now;
  }

  /** Something real begins, which `end` ends. */
  begin(): void {
    this.#underWay++;
    this.#begun++;
  }

  end(): void {
    if (--this.#underWay === 0) this.#ended();
  }

  /** Waits for something real, for which time stands still. */
  async real<T>(work: Promise<T>): Promise<T> {
    this.begin();
    try {
      return await work;
    } finally {
      this.end();
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#at(ms, resolve));
  }

  /** Lets time pass until it is over, which is asked after everything that happens. */
  async passUntil(isOver: () => boolean): Promise<void> {
    for (;;) {
      await this.#untilQuiet();
      if (isOver()) return;
      const next = [...this.#due].reduce<Due | undefined>(earlier, undefined);
      if (next === undefined) throw new Error('nothing will ever happen again');
      this.#due.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.work();
    }
  }

  /** Gives this time to the process; the result takes it back. */
  rule(random: SeededRandom): () => void {
    const { setTimeout, clearTimeout } = globalThis;
    const { setTimeout: sleep } = timersPromises;
    const real = { performance: Object.getOwnPropertyDescriptor(performance, 'now'), random: Math.random };
    const later = (work: (...given: unknown[]) => unknown, ms = 0, ...given: unknown[]): VirtualTimer =>
      new VirtualTimer(
        this.#at(ms, () => work(...given)),
        this.#due,
      );
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
    // Not from 0: what happened at 0 happened before.
    Object.defineProperty(performance, 'now', { configurable: true, value: () => 1_000_000 + this.#now });
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

  /** Nothing real is under way, and nothing real is begun by what has just ended. */
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

/** What `setTimeout` gives. */
class VirtualTimer {
  readonly #due: Due;
  readonly #all: Set<Due>;

  constructor(due: Due, all: Set<Due>) {
    this.#due = due;
    this.#all = all;
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
