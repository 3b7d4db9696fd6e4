import { messageOf, SignerError, type ErrorCode } from '../base/errors';
import type { Logger } from '../base/logger';
import { shared } from '../base/shared-answers';
import { type Time, pause, untilAborted } from '../base/time';

/** The state of a remote signer, for health and metrics. */
export interface SignerReport {
  /** The key that it signs with. */
  key: 'wallet' | 'issuer';
  /** Its URL without secrets, or the module and its token. */
  at: string;
  /** `unknown`: it was not asked yet. */
  state: 'unknown' | 'up' | 'failing';
  /** Start of the state, in epoch milliseconds. */
  since: number;
  /** The code of the failure. */
  code: ErrorCode | undefined;
  /** Answers since the start that were not the signature that was asked for. */
  wrongAnswers: number;
}

/** The longest wait for a signing thread, too. */
const LONGEST_WAIT_MS = 60_000;
/** Between two checks while callers wait, and while only health is asked. */
const CHECK_EVERY_MS = 1_000;
const WATCH_EVERY_MS = 10_000;
const MOMENT_MS = 3_000;
/** Callers keep a document in memory while they wait. */
const MOST_WAITING = 1_000;
/**
 * How long a signature that failed outweighs successful checks. A waiting mint is signed again within this
 * time; after it, nothing may be left to sign.
 */
const REMEMBERED_MS = 30_000;

/**
 * A signer outside this process: its key is in another program, or in a module. Its state follows from its
 * answers; the log says when it begins to fail and to answer.
 */
export class RemoteSigner {
  readonly #report: SignerReport;
  /** The last signature that failed, until one succeeds. */
  #unsigned: { error: SignerError; at: number } | undefined;
  #waiting = 0;
  /** Callers share the checks. */
  readonly #lastCheck: (withinMs: number) => Promise<[PromiseSettledResult<void>] | undefined>;
  readonly #watch: (withinMs: number) => Promise<void>;

  /** @param ask asks whether the signer answers and has the key. */
  constructor(
    private readonly time: Time,
    { key, at }: Pick<SignerReport, 'key' | 'at'>,
    private readonly ask: () => Promise<unknown>,
    private readonly logger?: Logger,
  ) {
    this.#report = { key, at, state: 'unknown', since: time.now(), code: undefined, wrongAnswers: 0 };
    this.#lastCheck = shared(() => Promise.allSettled([this.check()]), { time, leastMs: CHECK_EVERY_MS });
    this.#watch = shared(() => this.check(), { time, leastMs: WATCH_EVERY_MS });
  }

  report(): SignerReport {
    return { ...this.#report };
  }

  /** The last state, at once. The signer is asked in the background. */
  watch(): SignerReport {
    void this.#watch(0);
    return this.report();
  }

  /** Follows a signature, and what is made with it. Every error passes through. */
  async follow<T>(signature: Promise<T>): Promise<T> {
    try {
      const signed = await signature;
      this.#answers();
      return signed;
    } catch (error) {
      throw error instanceof SignerError ? this.#fails(error, true) : error;
    }
  }

  /**
   * Asks whether the signer answers and has the key. An answer that cannot be read is a wrong one.
   *
   * @throws SignerError; that of a signature, if it was a wrong answer lately: a liar answers checks too.
   */
  async check(): Promise<void> {
    await this.ask().catch((cause: unknown) => {
      throw this.#fails(cause instanceof SignerError ? cause : unreadable(cause), false);
    });
    const { error, at } = this.#unsigned ?? { error: undefined, at: -Infinity };
    // A clock that is set back does not prolong it.
    if (Math.abs(this.time.now() - at) >= REMEMBERED_MS) this.#answers();
    else if (error?.code === 'SIGNER_ANSWER_WRONG') throw error;
  }

  /**
   * Waits until the signer is ready. A wrong answer is not waited for: whoever gave it is not the signer.
   *
   * @throws SignerError of the last check when it is not ready in time; the reason of `left` when it aborts.
   */
  async ready(left: AbortSignal): Promise<void> {
    const { time } = this;
    const until = time.elapsed() + (this.#waiting < MOST_WAITING ? LONGEST_WAIT_MS : 0);
    let failure: SignerError | undefined;
    this.#waiting++;
    try {
      for (;;) {
        const restMs = Math.max(until - time.elapsed(), 0);
        // A check that hangs is not asked again, and the one before it failed.
        const [check] = (await untilAborted(left, this.#lastCheck(restMs))) ?? [];
        if (check?.status === 'fulfilled') return;
        failure = (check?.reason as SignerError | undefined) ?? failure ?? noAnswer(this.#report);
        if (failure.code === 'SIGNER_ANSWER_WRONG' || time.elapsed() >= until) throw failure;
        await pause(time, Math.min(CHECK_EVERY_MS, restMs), left);
      }
    } finally {
      this.#waiting--;
    }
  }

  /** The code of the signer's failure, after a check that takes a moment at most. Undefined if it is up. */
  async failure(): Promise<ErrorCode | undefined> {
    await this.#lastCheck(MOMENT_MS);
    const { state, code } = this.#report;
    return state === 'failing' ? code : undefined;
  }

  #answers(): void {
    const { key, at, state } = this.#report;
    this.#unsigned = undefined;
    if (state === 'up') return;
    if (state === 'failing') this.logger?.info({ signer: at }, `the ${key}'s signer answers again`);
    Object.assign(this.#report, { state: 'up', since: this.time.now(), code: undefined });
  }

  #fails(error: SignerError, isOfSignature: boolean): SignerError {
    const { key, at, state, code, since } = this.#report;
    const now = this.time.now();
    const isWrong = error.code === 'SIGNER_ANSWER_WRONG';
    if (isWrong) this.#report.wrongAnswers++;
    if (isOfSignature) this.#unsigned = { error, at: now };
    if (isWrong) this.logger?.error({ signer: at, error }, `the ${key}'s signer gave a wrong answer`);
    else if (code !== error.code) this.logger?.warn({ signer: at, error }, `the ${key}'s signer fails`);
    const begun = state === 'failing' ? since : now;
    Object.assign(this.#report, { state: 'failing', since: begun, code: error.code });
    return error;
  }
}

/** An error that a later try may not have. `problem`: a sentence without its period. */
export function signerError(code: ErrorCode, problem: string, remedy: string, cause?: unknown): SignerError {
  return new SignerError(code, `${problem}. ${remedy}`, { cause, remedy });
}

function unreadable(cause: unknown): SignerError {
  const message = `The signer's answer cannot be read: ${messageOf(cause)}.`;
  return new SignerError('SIGNER_ANSWER_WRONG', message, { cause });
}

function noAnswer({ at }: SignerReport): SignerError {
  return new SignerError('SIGNER_UNREACHABLE', `The signer at ${at} does not answer in time.`);
}
