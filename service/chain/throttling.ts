import type { JsonRpcPayload } from 'ethers';
import { type Time, pause } from '../base/time';
import { wantedPauseMs, isThrottled, isUnknown, noAnswer, nodeErrorOf } from './node-errors';
import type { Answer, Request } from './transport';

// How "too many requests" is recognised, and how long a node is left alone after it.

/** A request that a provider throttled. */
interface Throttled {
  request: Request;
  cause: unknown;
  /** How often it was throttled. */
  times: number;
  /** The number that `turn` gave for it. */
  turn: number;
}

/** Decides when requests are sent to a provider that throttles them. */
export interface Throttling {
  /** Resolves when the next request may be sent. */
  turn(): Promise<number>;
  answered(): void;
  /** Resolves with whether the request may be sent again, when it may. */
  again(throttled: Throttled): Promise<boolean>;
}

/** Attempts of a request that the provider throttles. The pauses before them take 16 seconds on average. */
const PATIENT_ATTEMPTS = 7;
const FIRST_PATIENT_PAUSE_MS = 500;

/** Each request waits for itself, longer each time: for calls that somebody waits for. */
export function createPatience(time: Time): Throttling {
  return {
    turn: () => Promise.resolve(0),
    answered: () => undefined,
    async again({ cause, times }) {
      if (times === PATIENT_ATTEMPTS) return false;
      const pauseMs = FIRST_PATIENT_PAUSE_MS * 2 ** (times - 1) * Math.random();
      await pause(time, Math.max(pauseMs, wantedPauseMs(cause, time.now())));
      return true;
    },
  };
}

/** Attempts of a request that the provider throttles. */
const PACED_ATTEMPTS = 5;
/** The pause between two requests after a refusal, long enough for free plans. */
const SLOW_INTERVAL_MS = 1_000;
/** Each answer multiplies the pause by this. */
const RECOVERY = 0.8;
/** A shorter pause is dropped. */
const SHORTEST_INTERVAL_MS = 50;

/**
 * All requests get a slower pace: for reading ranges of logs. Providers limit requests per second, each in
 * its own unit (credits, compute units, requests), and do not declare the limit; a free plan may allow two
 * log queries per second. The pace is therefore found: a refusal slows it down, and answers speed it up
 * again. A throttled range is sent once more, after which the caller asks for fewer blocks.
 */
export class Pacing implements Throttling {
  #intervalMs = 0;
  /** The number of the current pace. */
  #pace = 0;
  #nextAt = 0;
  /** Whether the provider was seen to answer "too many requests" to a range that is too wide. */
  #refusesWidth = false;

  constructor(private readonly time: Time) {}

  async turn(): Promise<number> {
    while (this.#intervalMs > 0) {
      const now = this.time.elapsed();
      if (now >= this.#nextAt) break;
      await pause(this.time, this.#nextAt - now);
    }
    this.#nextAt = this.time.elapsed() + this.#intervalMs;
    return this.#pace;
  }

  answered(): void {
    const intervalMs = this.#intervalMs * RECOVERY;
    this.#intervalMs = intervalMs < SHORTEST_INTERVAL_MS ? 0 : intervalMs;
  }

  /** The next turn comes after the pause. */
  async again({ request, cause, times, turn }: Throttled): Promise<boolean> {
    if (isRange(request) && (times > 1 || this.#refusesWidth)) {
      // A range that is refused at a slow pace too is too wide, so the caller must ask for fewer blocks.
      this.#refusesWidth = true;
      this.#intervalMs = 0;
      return false;
    }
    // The cause is the pace or the daily quota, and it may have been the cause of an earlier refusal of a
    // range.
    if (!isRange(request)) this.#refusesWidth = false;
    // Refusals of requests that were sent at the same pace count as one.
    if (turn === this.#pace) {
      this.#pace++;
      this.#intervalMs = SLOW_INTERVAL_MS;
      const pauseMs = Math.max(SLOW_INTERVAL_MS, wantedPauseMs(cause, this.time.now()));
      this.#nextAt = this.time.elapsed() + pauseMs;
    }
    return times < PACED_ATTEMPTS;
  }
}

/** Whether a request asks for the logs of more than one block. */
function isRange(request: Request): boolean {
  return [request].flat().some(({ method, params }) => {
    const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
    return method === 'eth_getLogs' && filter?.fromBlock !== filter?.toBlock;
  });
}

/** How long answers count as given at the same time. */
const TOGETHER_MS = 5_000;
/** Requests that get the same unknown error, and requests that are answered, which tell of a rate. */
const MOST_ALIKE = 3;

/**
 * Finds a limit of requests in words that are not known: several requests get the same error, while others
 * of their method succeed. A method that the node lacks never succeeds.
 */
export class RateSuspicion {
  readonly #answeredAt = new Map<string, number>();
  /** The times of the last answers. */
  #answers: number[] = [];
  #alike = { words: '', requests: new Set<Request>(), since: 0 };

  constructor(private readonly time: Time) {}

  /**
   * Whether the answers may tell of a rate: then the request is sent again.
   *
   * @throws the error of a status 429 if they do.
   */
  isRaised(request: Request, answers: readonly Answer[]): boolean {
    const verdicts = [request].flat().map((call, at) => this.#judge(request, call, answers[at]));
    const refused = answers[verdicts.indexOf('rate')];
    if (refused && 'error' in refused) throw noAnswer('too many requests', refused.error, 429);
    return verdicts.includes('unsure');
  }

  /**
   * A transaction and a range of logs are never unsure, but known, unless other requests get the same error:
   * those who send them know more refusals.
   */
  #judge(request: Request, { method }: JsonRpcPayload, answer: unknown): 'known' | 'unsure' | 'rate' {
    if (isThrottled(answer)) return 'rate';
    const now = this.time.elapsed();
    const isRecent = (at = -Infinity): boolean => now - at < TOGETHER_MS;
    if (nodeErrorOf(answer) === undefined) {
      this.#answeredAt.set(method, now);
      this.#answers = [...this.#answers, now].slice(-MOST_ALIKE);
    }
    const isBusy = this.#answers.length === MOST_ALIKE && isRecent(this.#answers[0]);
    if (!isUnknown(answer) || !isBusy) return 'known';
    const words = String(nodeErrorOf(answer)).replace(/0x[\da-f]+|\d+/gi, '');
    if (words !== this.#alike.words || !isRecent(this.#alike.since))
      this.#alike = { words, requests: new Set(), since: now };
    const isOwn = method === 'eth_sendRawTransaction' || method === 'eth_getLogs';
    if (!isOwn) this.#alike.requests.add(request);
    const isRate = this.#alike.requests.size >= MOST_ALIKE && isRecent(this.#answeredAt.get(method));
    return isRate ? 'rate' : isOwn ? 'known' : 'unsure';
  }
}
