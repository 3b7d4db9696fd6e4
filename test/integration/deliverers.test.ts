import { expect } from 'chai';
import pino from 'pino';
import type { Time } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { createDeliverers, type Deliverers } from '../../service/delivery/deliverers';
import { newState, openState } from '../helpers/database/engines';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const FEED = '31337:0x5b:0123456789abcdef';
const CHANNELS = [1, 2, 3];
const SEEDS = 15;
const STEPS = 40;
/** Longer than a process may stay unseen. */
const HANGS_MS = 11_000;

/** A process with deliveries under way. */
class Process {
  readonly id: string;
  readonly underWay = new Map(CHANNELS.map((channel) => [channel, 0]));
  readonly #deliverers: Deliverers;
  #elapsed = 0;
  #look: (() => unknown) | undefined;

  constructor(
    private readonly database: Database,
    number: number,
    private readonly limit: number,
  ) {
    this.id = `process-${number}`;
    const time: Time = {
      now: () => this.#elapsed,
      elapsed: () => this.#elapsed,
      later: (_ms, work) => {
        this.#look = work;
        return () => (this.#look = undefined);
      },
    };
    this.#deliverers = createDeliverers(database, { id: this.id, time, logger: pino({ level: 'silent' }) });
  }

  share(channel: number): number {
    return this.#deliverers.shareOf(FEED, channel, this.limit);
  }

  async join(): Promise<void> {
    await this.#deliverers.join(FEED, () => CHANNELS.every((one) => this.countOf(one) <= this.share(one)));
  }

  async leave(): Promise<void> {
    for (const channel of CHANNELS) this.underWay.set(channel, 0);
    await this.#deliverers.leave(FEED);
  }

  /** A second passes. */
  async look(): Promise<void> {
    this.#elapsed += 1_000;
    const look = this.#look;
    this.#look = undefined;
    await look?.();
    // The look ends with a new timer.
    while (this.#look === undefined) await new Promise(setImmediate);
  }

  /** Nothing of it runs for some time, in which the sinks give up its requests. */
  async hang(): Promise<void> {
    this.#elapsed += HANGS_MS;
    for (const channel of CHANNELS) this.underWay.set(channel, 0);
    await this.database.db
      .updateTable('deliverers')
      .set((eb) => ({ seen_at: eb('seen_at', '-', HANGS_MS) }))
      .where('process', '=', this.id)
      .execute();
  }

  countOf(channel: number): number {
    return this.underWay.get(channel) ?? 0;
  }

  /** Begins and ends deliveries as its share allows. */
  deliver(random: SeededRandom): void {
    const channel = random.pick(CHANNELS);
    const count = this.countOf(channel);
    const most = Math.max(count, this.share(channel));
    this.underWay.set(channel, random.chance(0.5) ? most : random.below(count + 1));
  }
}

describe('processes that deliver a feed', () => {
  it('never have more deliveries at once than a limit, and all of it in the end', async function () {
    const state = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    const database = await openState(state);
    let most = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      await database.db.deleteFrom('deliverers').execute();
      const random = seededRandom(seed);
      const limit = 1 + random.below(7);
      const all = [1, 2, 3].map((number) => new Process(database, number, limit));
      const joined = new Set<Process>();
      const total = (channel: number): number => all.reduce((sum, one) => sum + one.countOf(channel), 0);
      for (let step = 1; step <= STEPS; step++) {
        const process = random.pick(all);
        if (!joined.has(process)) {
          await process.join();
          joined.add(process);
        } else if (random.chance(0.05)) {
          await process.leave();
          joined.delete(process);
        } else if (random.chance(0.1)) {
          await process.hang();
          const others = [...joined].filter((other) => other !== process);
          for (const other of [...others, ...others]) if (random.chance(0.8)) await other.look();
          for (const other of others) other.deliver(random);
          if (random.chance(0.3)) await process.look();
          process.deliver(random);
        } else if (random.chance(0.4)) {
          await process.look();
        } else {
          process.deliver(random);
        }
        for (const channel of CHANNELS) {
          expect(total(channel), `seed ${seed}, step ${step}`).to.be.at.most(limit);
          most = Math.max(most, total(channel) / limit);
        }
      }
      for (const one of all) if (!joined.has(one)) await one.join();
      for (const one of all) await one.hang();
      for (let look = 1; look <= 3; look++) for (const one of all) await one.look();
      for (const channel of CHANNELS)
        expect(
          all.reduce((sum, one) => sum + one.share(channel), 0),
          `seed ${seed}`,
        ).to.equal(limit);
    }
    expect(most).to.equal(1);
  });
});
