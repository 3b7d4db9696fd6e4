import type { VirtualTime } from './virtual-time';

/** The events of a scenario, in order and in few words, and the violations among them. */
export class History {
  readonly lines: string[] = [];
  readonly violations: string[] = [];
  readonly #time: VirtualTime;
  readonly #names = new Map<string, string>();

  constructor(time: VirtualTime) {
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
    this.lines.push(`${(this.#time.now() / 1_000).toFixed(3)} ${text}`);
  }

  /** Notes an event that must not occur. */
  violation(what: string): void {
    this.violations.push(what);
    this.note(`WRONG: ${what}`);
  }
}
