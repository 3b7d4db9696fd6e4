/** Whoever waits for the same document: while it is not kept yet, it is made for them alone. */
export class Callers {
  readonly #allLeft = new AbortController();
  #waiting = 0;
  #isKept = false;

  constructor(first: AbortSignal) {
    this.join(first);
  }

  /** Aborts when the last one leaves, unless the document is kept by then. Its reason is the last one's. */
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
   * From here on the work is finished, whoever waits.
   *
   * @throws the last one's reason when all have left.
   */
  keep(): void {
    this.allLeft.throwIfAborted();
    this.#isKept = true;
  }
}
