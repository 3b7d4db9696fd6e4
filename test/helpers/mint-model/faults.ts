import type { SeededRandom } from '../seeded-random';
import type { UnsteadyChain } from './unsteady-chain';
import type { VirtualTime } from './virtual-time';

/**
 * The faults that a scenario may have:
 *
 * - Calls: `lost request`, `lost answer`, `gateway` (answers for the node, without JSON-RPC), `slow`.
 * - eth_sendRawTransaction: `false refusal` of a transaction that was passed on or not; `swallowed`:
 *   accepted, but not passed on.
 * - State of a backend: `unknown hash` of a transaction that waits or is mined; `stale` by one or two blocks.
 * - Network: `forgotten` by the node, `heard again` from others; `other sender` with the wallet's key;
 *   `reorganisation`; `empty block`, `some left out`; `dear block`: its base fee is more than mints offer;
 *   `pause` of the registry.
 * - Service: `journal away` before or after a change; `kill`.
 * - Signer of the wallet: `signer away`, `signer refuses`; `signature lost`, `signature wrong`,
 *   `signature slow`.
 */
export const FAULTS = [
  'lost request',
  'lost answer',
  'gateway',
  'slow',
  'false refusal',
  'swallowed',
  'unknown hash',
  'stale',
  'forgotten',
  'heard again',
  'other sender',
  'reorganisation',
  'empty block',
  'some left out',
  'dear block',
  'pause',
  'journal away',
  'kill',
  'signer away',
  'signer refuses',
  'signature lost',
  'signature wrong',
  'signature slow',
] as const;
export type Fault = (typeof FAULTS)[number];

/** The highest probability of a fault in a scenario that has it, and in a spell of the fault. */
const CHANCES: Record<Fault, [usual: number, spell: number]> = {
  'lost request': [0.1, 0.8],
  'lost answer': [0.1, 0.8],
  gateway: [0.05, 0.6],
  slow: [0.1, 0.6],
  'false refusal': [0.6, 1],
  swallowed: [0.2, 0.8],
  'unknown hash': [0.5, 1],
  stale: [0.4, 1],
  forgotten: [0.2, 1],
  'heard again': [0.3, 1],
  'other sender': [0.1, 0.6],
  reorganisation: [0.25, 0.8],
  'empty block': [0.3, 1],
  'some left out': [0.3, 1],
  'dear block': [0.08, 0.5],
  pause: [0.06, 0.3],
  'journal away': [0.05, 0.7],
  kill: [1, 1],
  'signer away': [0.3, 1],
  'signer refuses': [0.3, 1],
  'signature lost': [0.4, 1],
  'signature wrong': [0.6, 1],
  'signature slow': [0.3, 0.8],
};

/** The share of scenarios that have a given fault. */
const SHARE = 0.5;
const MOST_SPELLS = 3;
const LONGEST_SPELL_MS = 14_000;

interface Spell {
  from: number;
  until: number;
  chance: number;
}

/**
 * The faults of a scenario and their times. A scenario has only some of the faults, because too many hide
 * each other.
 */
export class FaultPlan {
  /** The number of times that each fault occurred. */
  readonly counts: Record<string, number> = {};
  readonly #usual = new Map<Fault, number>();
  readonly #spells = new Map<Fault, Spell[]>();
  #isOver = false;

  constructor(random: SeededRandom, lengthMs: number) {
    for (const fault of FAULTS) {
      const [usual, spell] = CHANCES[fault];
      // Every fault draws its numbers, so that a fault does not change those of the others.
      const isThere = random.chance(SHARE);
      const chance = random.fraction() ** 2 * usual;
      const spells = Array.from({ length: random.below(MOST_SPELLS + 1) }, () => {
        const from = random.below(lengthMs);
        const until = from + 1_000 + random.below(LONGEST_SPELL_MS);
        return { from, until, chance: (0.5 + random.fraction() / 2) * spell };
      });
      if (!isThere) continue;
      this.#usual.set(fault, chance);
      this.#spells.set(fault, spells);
    }
  }

  has(fault: Fault): boolean {
    return !this.#isOver && this.#usual.has(fault);
  }

  chanceOf(fault: Fault, now: number): number {
    if (!this.has(fault)) return 0;
    const spells = this.#spells.get(fault)?.filter(({ from, until }) => now >= from && now < until) ?? [];
    return Math.max(this.#usual.get(fault) ?? 0, ...spells.map(({ chance }) => chance));
  }

  /** Draws whether a fault occurs now, and counts it. */
  strikes(fault: Fault, now: number, random: SeededRandom): boolean {
    const strikes = random.chance(this.chanceOf(fault, now));
    if (strikes) this.count(fault);
    return strikes;
  }

  /** Ends all faults. */
  end(): void {
    this.#isOver = true;
  }

  count(what: string, times = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + times;
  }
}

/** The events of a scenario, in order and in few words, and the violations among them. */
export class History {
  readonly lines: string[] = [];
  readonly violations: string[] = [];
  readonly #names = new Map<string, string>();

  constructor(private readonly time: VirtualTime) {}

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
    this.lines.push(`${(this.time.now() / 1_000).toFixed(3)} ${text}`);
  }

  /** Notes an event that must not occur. */
  violation(what: string): void {
    this.violations.push(what);
    this.note(`WRONG: ${what}`);
  }
}

/** The objects that all parts of a scenario share. */
export interface ScenarioParts {
  time: VirtualTime;
  faults: FaultPlan;
  chain: UnsteadyChain;
  history: History;
}
