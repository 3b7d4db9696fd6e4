import type { Clock, Time } from '../base/time';
import { messageOf, SignerError } from '../base/errors';
import type { Logger } from '../base/logger';
import { shared } from '../base/shared-answers';
import { pause, untilAborted } from '../base/waiting';

/** A signer outside this process: its key is in another program, or in a module. */
export interface RemoteSigner {
  /**
   * Asks whether the signer answers and has the key.
   *
   * @throws SignerError, also for some time after a wrong answer.
   */
  check(this: void): Promise<void>;
  report(this: void): SignerReport;
}

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
  code: string | undefined;
  /** Answers since the start that were not the signature that was asked for. */
  wrongAnswers: number;
}

/**
 * How long a signature that failed outweighs successful checks. A waiting mint is signed again within this
 * time; after it, nothing may be left to sign.
 */
const REMEMBERED_MS = 30_000;

/** Follows the state of a remote signer from its answers, and logs when it begins to fail and to answer. */
export class SignerState {
  readonly #report: SignerReport;
  readonly #name: string;
  /** The last signature that failed, until one succeeds. */
  #unsigned: { error: SignerError; at: number } | undefined;

  constructor(
    private readonly clock: Clock,
    { key, at }: Pick<SignerReport, 'key' | 'at'>,
    private readonly logger: Logger | undefined,
  ) {
    this.#name = `the ${key}'s signer`;
    this.#report = { key, at, state: 'unknown', since: clock.now(), code: undefined, wrongAnswers: 0 };
  }

  report(): SignerReport {
    return { ...this.#report };
  }

  /** The signer, which `check` asks. */
  signerWith(check: () => Promise<void>): RemoteSigner {
    return { check: () => this.ofCheck(check()), report: () => this.report() };
  }

  /** Follows a signature, and what is made with it. Every error passes through. */
  async ofSignature<T>(asked: Promise<T>): Promise<T> {
    try {
      const signature = await asked;
      this.#answers();
      return signature;
    } catch (error) {
      throw error instanceof SignerError ? this.#fails(error, true) : error;
    }
  }

  /**
   * Follows a check. An answer that cannot be read is a wrong one; a SignerError passes through.
   *
   * @throws SignerError of a signature, if that was a wrong answer lately: a liar answers checks too.
   */
  async ofCheck(asked: Promise<void>): Promise<void> {
    await asked.catch((cause: unknown) => {
      throw this.#fails(cause instanceof SignerError ? cause : unreadable(cause), false);
    });
    const { error, at } = this.#unsigned ?? { error: undefined, at: -Infinity };
    // A clock that is set back does not prolong it.
    if (Math.abs(this.clock.now() - at) >= REMEMBERED_MS) this.#answers();
    else if (error?.code === 'SIGNER_ANSWER_WRONG') throw error;
  }

  #answers(): void {
    const { at, state } = this.#report;
    this.#unsigned = undefined;
    if (state === 'up') return;
    if (state === 'failing') this.logger?.info({ signer: at }, `${this.#name} answers again`);
    Object.assign(this.#report, { state: 'up', since: this.clock.now(), code: undefined });
  }

  #fails(error: SignerError, isOfSignature: boolean): SignerError {
    const { at, state, code } = this.#report;
    const now = this.clock.now();
    const isWrong = error.code === 'SIGNER_ANSWER_WRONG';
    if (isWrong) this.#report.wrongAnswers++;
    if (isOfSignature) this.#unsigned = { error, at: now };
    if (isWrong) this.logger?.error({ signer: at, error }, `${this.#name} gave a wrong answer`);
    else if (code !== error.code) this.logger?.warn({ signer: at, error }, `${this.#name} fails`);
    const since = state === 'failing' ? this.#report.since : now;
    Object.assign(this.#report, { state: 'failing', since, code: error.code });
    return error;
  }
}

/** Whether a remote signer is ready now. Callers share its checks. */
export type SignerReadiness = ReturnType<typeof createReadiness>;

/** The longest wait for a signing thread, too. */
const LONGEST_WAIT_MS = 60_000;
const CHECK_EVERY_MS = 1_000;
const MOMENT_MS = 3_000;
/** Callers keep a document in memory while they wait. */
const MOST_WAITING = 1_000;

export function createReadiness(time: Time, { check, report }: RemoteSigner) {
  const outcomeOfCheck = async () => ({
    failure: await check().then(
      () => undefined,
      (error: unknown) => error as SignerError,
    ),
  });
  const ask = shared(outcomeOfCheck, { time, leastMs: CHECK_EVERY_MS });
  let waiting = 0;

  /**
   * Waits until the signer is ready. A wrong answer is not waited for: whoever gave it is not the signer.
   *
   * @throws SignerError of the last check when it is not ready in time; the reason of `left` when it aborts.
   */
  async function ready(left: AbortSignal): Promise<void> {
    const until = time.elapsed() + (waiting < MOST_WAITING ? LONGEST_WAIT_MS : 0);
    let failure: SignerError | undefined;
    waiting++;
    try {
      for (;;) {
        const restMs = Math.max(until - time.elapsed(), 0);
        // A check that hangs is not asked again, and the one before it failed.
        const answer = await untilAborted(left, ask(restMs));
        if (answer !== undefined && answer.failure === undefined) return;
        failure = answer?.failure ?? failure ?? noAnswer(report());
        if (failure.code === 'SIGNER_ANSWER_WRONG' || time.elapsed() >= until) throw failure;
        await pause(time, Math.min(CHECK_EVERY_MS, restMs), left);
      }
    } finally {
      waiting--;
    }
  }

  /** The code of the signer's failure, after a check that takes a moment at most. Undefined if it is up. */
  async function failure(): Promise<string | undefined> {
    await ask(MOMENT_MS);
    const { state, code } = report();
    return state === 'failing' ? code : undefined;
  }

  return { ready, failure };
}

function unreadable(cause: unknown): SignerError {
  const message = `The signer's answer cannot be read: ${messageOf(cause)}.`;
  return new SignerError('SIGNER_ANSWER_WRONG', message, { cause, retryable: true });
}

function noAnswer({ at }: SignerReport): SignerError {
  return new SignerError('SIGNER_UNREACHABLE', `The signer at ${at} does not answer in time.`, {
    retryable: true,
  });
}
