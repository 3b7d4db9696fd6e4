import { channel } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import timersPromises from 'node:timers/promises';
import { systemTime, type Time } from '../../service/base/time';
import type { Chain } from '../../service/chain/chain';
import type { RpcNode } from '../../service/chain/node';
import type { Database } from '../../service/database/database';
import { stopLater } from './resources';
import type { SeededRandom } from './seeded-random';
import { markSockets } from './sockets-under-way';

/** Work that is due at a time. */
interface Due {
  at: number;
  /** The order of work that is due at the same time. */
  order: number;
  work: () => unknown;
}

/** Longer than any real work takes: after this time, an end was forgotten. */
const HANGS_AFTER_MS = 240_000;
/** How long to wait for work that is not marked, before the next look. */
const IDLE_MS = 5;
/** The turns of the event loop without new work after which the work has ended. */
const QUIET_TURNS = 4;
/** The longest wait of a test, in virtual time. */
const LONGEST_MS = 3_600_000;

/** Waits for a promise, in virtual time by letting it pass. */
export async function settled<T>(time: Time | undefined, promise: Promise<T>): Promise<T> {
  return time instanceof VirtualTime ? time.settled(promise) : promise;
}

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
  #idleFor = 0;
  readonly #realSetTimeout = globalThis.setTimeout;
  readonly #realClearTimeout = globalThis.clearTimeout;

  /** @param beginning what `now` says at first. */
  constructor(private readonly beginning = 0) {}

  /** A time that begins now, and stands still while a request over HTTP or WebSocket is under way. */
  static ofRequests(): VirtualTime {
    const time = new VirtualTime(systemTime.now());
    stopLater('the requests of a virtual time', standStillForRequests(time));
    stopLater('the WebSockets of a virtual time', markSockets(time));
    return time;
  }

  /** The beginning, and the virtual milliseconds since. */
  now(): number {
    return this.beginning + this.#now;
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

  /** Waits, within real work, for something that only happens when time passes, or never. */
  async aside<T>(awaited: Promise<T>): Promise<T> {
    this.end();
    try {
      return await awaited;
    } finally {
      this.begin();
    }
  }

  /** Does not start at 0, which code may use for "long ago". */
  elapsed(): number {
    return 1_000_000 + this.#now;
  }

  /** How much work waits for its time. */
  get dueCount(): number {
    return this.#due.size;
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
      await this.#step();
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
      await this.#step();
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
    let isOver = false;
    this.#at(ms, () => (isOver = true));
    await this.until('it passed', () => isOver, ms);
  }

  async #step(): Promise<void> {
    const next = [...this.#due].reduce<Due | undefined>(earlier, undefined);
    if (next === undefined) return this.#untilMore();
    this.#idleFor = 0;
    this.#due.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.work();
  }

  /** Nothing is due. Work that is not marked, as reading a file, may be under way. */
  async #untilMore(): Promise<void> {
    if (this.#idleFor++ * IDLE_MS > HANGS_AFTER_MS) throw new Error('nothing will ever happen again');
    await new Promise<void>((resolve) => void this.#realSetTimeout(resolve, IDLE_MS));
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
      // Some statements of a database are followed by a turn of the event loop.
      for (let turn = 0; turn < QUIET_TURNS; turn++) await nextTurn();
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

/** A request of undici, as its channels tell of it. */
interface UndiciRequest {
  addHeader(name: string, value: string): void;
}

const NUMBER_HEADER = 'x-number-of-request';
/** The ends of the requests under way, by number. */
const ENDS = new Map<string, () => void>();
let lastNumber = 0;

/** The request is not answered any more. No virtual time stands still for it. */
export function neverAnswer(headers: IncomingHttpHeaders): void {
  // Each virtual time of the process has added a number.
  for (const number of String(headers[NUMBER_HEADER]).split(', ')) ENDS.get(number)?.();
}

/** Requests of undici and of `fetch`. The result ends it. */
function standStillForRequests(time: VirtualTime): () => void {
  const numbers = new WeakMap<UndiciRequest, string>();
  const begin = (message: unknown): void => {
    const { request } = message as { request: UndiciRequest };
    const number = String(++lastNumber);
    numbers.set(request, number);
    request.addHeader(NUMBER_HEADER, number);
    ENDS.set(number, () => {
      ENDS.delete(number);
      time.end();
    });
    time.begin();
  };
  const end = (message: unknown): void => {
    const { request } = message as { request: UndiciRequest };
    ENDS.get(numbers.get(request) ?? '')?.();
  };
  const listeners: [name: string, listener: (message: unknown) => void][] = [
    ['undici:request:create', begin],
    ['undici:request:trailers', end],
    ['undici:request:error', end],
  ];
  for (const [name, listener] of listeners) channel(name).subscribe(listener);
  return () => {
    for (const [name, listener] of listeners) channel(name).unsubscribe(listener);
  };
}

/** Stops virtual time while a request of the client is running. */
export function tellOfRequests(client: Chain, time: VirtualTime): void {
  const { transport } = (client as Chain & { node: RpcNode }).node;
  const send = transport.send.bind(transport);
  transport.send = (payload) => time.real(send(payload));
}

/** Stops virtual time while a statement or a transaction of the database is running. */
export function tellOfStatements({ db }: Pick<Database, 'db'>, time: VirtualTime): void {
  const executor = db.getExecutor();
  const provide = executor.provideConnection.bind(executor);
  executor.provideConnection = (consumer) => time.real(provide(consumer));
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
