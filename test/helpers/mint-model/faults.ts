import type { SeededRandom } from '../seeded-random';
import type { UnsteadyChain } from './unsteady-chain';
import type { History } from '../scenario';
import type { VirtualTime } from '../virtual-time';

/**
 * The faults that a scenario may have:
 *
 * - Calls: `lost request`, `lost answer`, `gateway` (answers for the node, without JSON-RPC), `slow`.
 * - eth_sendRawTransaction: `false refusal` of a transaction that was passed on or not; `swallowed`:
 *   accepted, but not passed on; `lost and refused`: every transaction of a mint is lost after the node had
 *   it, and refused whenever it is sent again.
 * - State of a backend: `unknown hash` of a transaction that waits or is mined; `stale` by one or two blocks.
 * - Network: `forgotten` by the node, `heard again` from others; `other sender` with the wallet's key;
 *   `reorganisation`; `empty block`, `some left out`; `dear block`: its base fee is more than mints offer;
 *   `pause` of the registry.
 * - Service: `journal away` before or after a change; `kill`.
 * - Signer of the wallet: `signer away`, `signer refuses`; `signature lost`, `signature wrong`,
 *   `signature slow`.
 *
 * Each with its highest probability in a scenario that has it, and in a spell of it.
 */
const CHANCES = {
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
  'lost and refused': [1, 1],
} satisfies Record<string, [usual: number, spell: number]>;
export type Fault = keyof typeof CHANCES;

/** The share of scenarios that have a given fault. */
const SHARE = 0.5;
const MOST_SPELLS = 3;
const LONGEST_SPELL_MS = 28_000;

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
  readonly #usual = new Map<Fault, number>();
  readonly #spells = new Map<Fault, Spell[]>();
  #isOver = false;

  constructor(random: SeededRandom, lengthMs: number) {
    for (const [fault, [usual, spell]] of Object.entries(CHANCES) as [Fault, [number, number]][]) {
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

  /** Ends all faults. */
  end(): void {
    this.#isOver = true;
  }
}

/** The objects that all parts of a scenario share. */
export interface ScenarioParts {
  time: VirtualTime;
  faults: FaultPlan;
  chain: UnsteadyChain;
  history: History;
}

/** A part of a scenario. It draws its own numbers, so that a change of one does not change the others. */
export abstract class Part {
  constructor(
    protected readonly parts: ScenarioParts,
    protected readonly random: SeededRandom,
  ) {}

  /** Draws whether a fault occurs now, and counts it. */
  protected strikes(fault: Fault): boolean {
    const { time, faults, history } = this.parts;
    const strikes = this.random.chance(faults.chanceOf(fault, time.now()));
    if (strikes) history.count(fault);
    return strikes;
  }
}
