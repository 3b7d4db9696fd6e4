/**
 * The callers that wait for the same document. Until it is kept, work on it stops when all of them have left.
 */
export class Callers {
  readonly #allLeft = new AbortController();
  #waiting = 0;
  #isKept = false;

  constructor(first: AbortSignal) {
    this.join(first);
  }

  /** Aborts when the last caller leaves before the document is kept, with that caller's reason. */
  get allLeft(): AbortSignal {
    return this.#allLeft.signal;
  }

  /** @param left aborts when the caller leaves. */
  join(left: AbortSignal): void {
    this.#waiting += 1;
    const leave = (): void => {
      this.#waiting -= 1;
      if (this.#waiting === 0 && !this.#isKept) this.#allLeft.abort(left.reason);
    };
    if (left.aborted) leave();
    else left.addEventListener('abort', leave, { once: true });
  }

  /**
   * From now on the work is finished even if all callers leave.
   *
   * @throws the last caller's reason when all have left.
   */
  keep(): void {
    this.allLeft.throwIfAborted();
    this.#isKept = true;
  }
}
