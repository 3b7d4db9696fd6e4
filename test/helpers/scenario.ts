/** The result of one scenario of a model. */
export interface ScenarioResult {
  seed: number;
  /** The broken rules. Empty if all went well. */
  violations: string[];
  /** The number of occurrences of each fault and event. */
  counts: Record<string, number>;
  /** The events, in order and in few words, and the violations among them. */
  history: string[];
}

/** The environment of a model, in which scenarios run one after the other. */
export interface Place {
  run(this: void, seed: number): Promise<ScenarioResult>;
}

/** The events of a scenario so far. */
export class History implements ScenarioResult {
  readonly violations: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly history: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #time: { now(): number } | undefined;

  /** @param time of the scenario, which is noted with each event. */
  constructor(
    readonly seed: number,
    time?: { now(): number },
  ) {
    this.#time = time;
  }

  /** Gives a token a shorter name for the lines that follow. */
  name(tokenId: string, name: string): void {
    this.#names.set(tokenId, name);
  }

  nameOf(tokenId: string | undefined): string {
    return this.#names.get(tokenId ?? '') ?? 'other';
  }

  note(event: string): void {
    let text = event.replaceAll(/0x[0-9a-f]{64,}/g, (long) => long.slice(0, 8));
    for (const [tokenId, name] of this.#names) text = text.replaceAll(tokenId, name);
    this.history.push(this.#time ? `${(this.#time.now() / 1_000).toFixed(3)} ${text}` : text);
  }

  /** Notes an event that must not occur. */
  violation(what: string): void {
    this.violations.push(what);
    this.note(`WRONG: ${what}`);
  }

  count(what: string, times = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + times;
  }

  /** Waits for the scenario. An error of it is a violation. */
  async of(scenario: Promise<unknown>): Promise<this> {
    await scenario.catch((error: unknown) =>
      this.violation(`the scenario broke off: ${error instanceof Error ? error.stack : String(error)}`),
    );
    return this;
  }
}
