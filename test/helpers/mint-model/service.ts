import type { SeededRandom } from '../seeded-random';
import { ServiceLife, type Death, type ServiceSurroundings } from './service-life';

const LONGEST_DOWN_MS = 4_000;
const LONGEST_LIFE_MS = 15_000;
/** The most steps before a kill. Steps are statements of the journal and sent transactions. */
const MOST_STEPS = 60;
/** The share of processes that are stopped gracefully, if processes are killed at all. */
const STOPPED_IN_ORDER = 0.3;
const LOOK_EVERY_MS = 100;

/**
 * The service: one process after the other on the same journal. Each is killed or stopped until the faults
 * end.
 */
export class Service {
  readonly #surroundings: ServiceSurroundings;
  readonly #random: SeededRandom;
  readonly #lives: ServiceLife[] = [];

  constructor(surroundings: ServiceSurroundings) {
    this.#surroundings = surroundings;
    this.#random = surroundings.random;
  }

  /** The last process, dead or alive. */
  get current(): ServiceLife | undefined {
    return this.#lives.at(-1);
  }

  async live(isOver: () => boolean): Promise<void> {
    const { time, history } = this.#surroundings.parts;
    while (!isOver()) {
      const life = await ServiceLife.start(this.#surroundings, this.#nextDeath());
      this.#lives.push(life);
      history.note(`process ${this.#lives.length} starts`);
      await this.#watch(life, isOver);
      if (!isOver()) await time.sleep(this.#random.below(LONGEST_DOWN_MS));
    }
    for (const life of this.#lives) await life.end();
  }

  /** Closes the clients and proxies of all processes. */
  async close(): Promise<void> {
    for (const life of this.#lives) await life.close();
  }

  /** Waits until the process has ended; stops it if that is how it ends. */
  async #watch(life: ServiceLife, isOver: () => boolean): Promise<void> {
    const { time, faults, history } = this.#surroundings.parts;
    const isStopped = faults.has('kill') && this.#random.chance(STOPPED_IN_ORDER);
    const stopsAt = time.now() + this.#random.below(LONGEST_LIFE_MS);
    while (!isOver() && !life.isDead) {
      await time.sleep(LOOK_EVERY_MS);
      if (!isStopped || !faults.has('kill') || time.now() < stopsAt || life.isDead) continue;
      history.note('stopped');
      faults.count('stop');
      await life.stop();
    }
  }

  #nextDeath(): Death {
    const step = 1 + this.#random.below(MOST_STEPS);
    const moment = this.#random.pick(['before', 'after'] as const);
    const afterMs = this.#random.below(LONGEST_LIFE_MS);
    if (!this.#surroundings.parts.faults.has('kill')) return undefined;
    return this.#random.chance(0.7) ? { step, moment } : { afterMs };
  }
}
