import { systemClock } from '../base/clock';
import type { SignerError } from '../base/errors';
import type { Logger } from '../base/logger';

/** A signer outside this process: its key is in another program, or in a module. */
export interface RemoteSigner {
  /**
   * Asks whether the signer answers and has the key.
   *
   * @throws SignerError
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

/** Follows the state of a remote signer from its answers, and logs when it begins to fail and to answer. */
export class SignerState {
  readonly #report: SignerReport;
  readonly #name: string;
  /** Whether the last failure was about a signature: only a signature ends it. */
  #isOfSignature = false;

  constructor(
    { key, at }: Pick<SignerReport, 'key' | 'at'>,
    private readonly logger: Logger | undefined,
  ) {
    this.#name = `the ${key}'s signer`;
    this.#report = { key, at, state: 'unknown', since: systemClock.now(), code: undefined, wrongAnswers: 0 };
  }

  report(): SignerReport {
    return { ...this.#report };
  }

  /** Follows a signature. Its error passes through. */
  ofSignature<T>(asked: Promise<T>): Promise<T> {
    return this.#follow(asked, true);
  }

  /** Follows a check. Its error passes through. */
  ofCheck(asked: Promise<void>): Promise<void> {
    return this.#follow(asked, false);
  }

  async #follow<T>(asked: Promise<T>, isSignature: boolean): Promise<T> {
    try {
      const answer = await asked;
      if (isSignature || !this.#isOfSignature) this.#answers();
      return answer;
    } catch (error) {
      this.#fails(error as SignerError, isSignature);
      throw error;
    }
  }

  #answers(): void {
    const { at, state } = this.#report;
    if (state === 'up') return;
    if (state === 'failing') this.logger?.info({ signer: at }, `${this.#name} answers again`);
    this.#isOfSignature = false;
    Object.assign(this.#report, { state: 'up', since: systemClock.now(), code: undefined });
  }

  #fails(error: SignerError, isSignature: boolean): void {
    const { at, state, code } = this.#report;
    const isWrong = error.code === 'SIGNER_ANSWER_WRONG';
    if (isWrong) this.#report.wrongAnswers++;
    this.#isOfSignature = isSignature && error.code !== 'SIGNER_UNREACHABLE';
    if (isWrong) this.logger?.error({ signer: at, error }, `${this.#name} gave a wrong answer`);
    else if (code !== error.code) this.logger?.warn({ signer: at, error }, `${this.#name} fails`);
    const since = state === 'failing' ? this.#report.since : systemClock.now();
    Object.assign(this.#report, { state: 'failing', since, code: error.code });
  }
}
