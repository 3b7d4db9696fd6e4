import { expect } from 'chai';
import type { KyselyPlugin } from 'kysely';
import pino from 'pino';
import { newDeferred, type Time } from '../../service/base/time';
import type { Database } from '../../service/database/database';
import { createDeliverers, type Deliverers } from '../../service/delivery/deliverers';
import { newState, openState } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const FEED = '31337:0x5b:0123456789abcdef';
const CHANNELS = [1, 2, 3];
const SEEDS = 15;
const STEPS = 40;
/** Longer than a process may stay unseen. */
const HANGS_MS = 5_000;

/** A process with deliveries under way. */
class Process {
  readonly id: string;
  readonly underWay = new Map(CHANNELS.map((channel) => [channel, 0]));
  readonly lacking = new Set<number>();
  readonly #deliverers: Deliverers;
  readonly #due = new Set<() => unknown>();
  #elapsed = 0;

  constructor(
    private readonly database: Database,
    number: number,
    private readonly limit: number,
    ...plugins: KyselyPlugin[]
  ) {
    this.id = `process-${number}`;
    const time: Time = {
      now: () => this.#elapsed,
      elapsed: () => this.#elapsed,
      later: (_ms, work) => {
        this.#due.add(work);
        return () => this.#due.delete(work);
      },
    };
    const db = plugins.reduce((plain, plugin) => plain.withPlugin(plugin), database.db);
    this.#deliverers = createDeliverers(
      { ...database, db },
      { id: this.id, time, logger: pino({ level: 'silent' }) },
    );
  }

  share(channel: number): number {
    return this.#deliverers.shareOf(FEED, channel, this.limit);
  }

  async join(): Promise<void> {
    const fit = (): boolean => CHANNELS.every((one) => this.countOf(one) <= this.share(one));
    await this.#deliverers.join(FEED, { fit, lacking: this.lacking });
  }

  async leave(): Promise<void> {
    for (const channel of CHANNELS) this.underWay.set(channel, 0);
    await this.#deliverers.leave(FEED);
  }

  /** Time passes, and what is due begins. */
  pass(ms: number): void {
    this.#elapsed += ms;
    const due = [...this.#due];
    this.#due.clear();
    for (const work of due) work();
  }

  async look(): Promise<void> {
    this.pass(1_000);
    // The look ends with a new timer.
    while (this.#due.size === 0) await new Promise(setImmediate);
  }

  /** Nothing of it runs for some time, in which the sinks give up its requests. */
  async hang(): Promise<void> {
    this.#elapsed += HANGS_MS;
    for (const channel of CHANNELS) this.underWay.set(channel, 0);
    await this.seenLater(-HANGS_MS);
  }

  /** Moves the time at which it was seen. */
  async seenLater(ms: number): Promise<void> {
    await this.database.db
      .updateTable('deliverers')
      .set((eb) => ({ seen_at: eb('seen_at', '+', ms) }))
      .where('process', '=', this.id)
      .execute();
  }

  get dueCount(): number {
    return this.#due.size;
  }

  countOf(channel: number): number {
    return this.underWay.get(channel) ?? 0;
  }

  /** Begins and ends deliveries as its share allows. */
  deliver(random: SeededRandom): void {
    const channel = random.pick(CHANNELS);
    if (random.chance(0.05)) {
      // The sink of a channel goes or comes, and its deliveries end before.
      this.underWay.set(channel, 0);
      if (!this.lacking.delete(channel)) this.lacking.add(channel);
    }
    const count = this.countOf(channel);
    const most = Math.max(count, this.share(channel));
    this.underWay.set(channel, random.chance(0.5) ? most : random.below(count + 1));
  }
}

const total = (all: readonly Process[], channel: number): number =>
  all.reduce((sum, one) => sum + one.countOf(channel), 0);
const sharesOf = (all: readonly Process[], channel = 1): number[] => all.map((one) => one.share(channel));
const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0);

async function lookAll(all: readonly Process[], times = 3): Promise<void> {
  for (let look = 1; look <= times; look++) for (const one of all) await one.look();
}

describe('processes that deliver a feed', () => {
  let database: Database;

  before(async function () {
    const state = await newState('PostgreSQL');
    if (state === undefined) return this.skip();
    database = await openState(state);
  });

  beforeEach(() => database.db.deleteFrom('deliverers').execute());

  const startThree = (limit: number): [Process, Process, Process] => [
    new Process(database, 1, limit),
    new Process(database, 2, limit),
    new Process(database, 3, limit),
  ];

  async function joinedThree(limit: number): Promise<[Process, Process, Process]> {
    const all = startThree(limit);
    for (const one of all) await one.join();
    await lookAll(all);
    return all;
  }

  it('never have more deliveries at once than a limit, and all of it in the end', async () => {
    let most = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      await database.db.deleteFrom('deliverers').execute();
      const random = seededRandom(seed);
      const limit = 1 + random.below(7);
      const all = startThree(limit);
      const joined = new Set<Process>();
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
          expect(total(all, channel), `seed ${seed}, step ${step}`).to.be.at.most(limit);
          most = Math.max(most, total(all, channel) / limit);
        }
      }
      for (const one of all) if (!joined.has(one)) await one.join();
      for (const one of all) await one.hang();
      await lookAll(all);
      for (const channel of CHANNELS) {
        const isLackedByAll = all.every(({ lacking }) => lacking.has(channel));
        expect(sum(sharesOf(all, channel)), `seed ${seed}`).to.equal(isLackedByAll ? 0 : limit);
      }
    }
    expect(most).to.equal(1);
  });

  it('have no more than the limit between them when they join at the same moment', async () => {
    for (let round = 1; round <= 10; round++) {
      await database.db.deleteFrom('deliverers').execute();
      const all = startThree(4);
      await Promise.all(all.map((one) => one.join()));
      expect(sum(sharesOf(all)), `round ${round}`).to.be.at.most(4);
      await lookAll(all);
      expect(sum(sharesOf(all)), `round ${round}`).to.equal(4);
    }
  });

  it('leave the limit of a channel to those that have a sink for it', async () => {
    const all = await joinedThree(6);
    expect(sharesOf(all, 1)).to.deep.equal([2, 2, 2]);
    all[0].lacking.add(1);
    await lookAll(all);
    expect(sharesOf(all, 1)).to.deep.equal([0, 3, 3]);
    expect(sharesOf(all, 2)).to.deep.equal([2, 2, 2]);
    all[0].lacking.clear();
    await lookAll(all);
    expect(sharesOf(all, 1)).to.deep.equal([2, 2, 2]);
  });

  it('have their share back after a late look, although requests are under way', async () => {
    const one = new Process(database, 1, 4);
    await one.join();
    await lookAll([one]);
    one.underWay.set(1, one.share(1));
    one.pass(3_000);
    expect(one.share(1), 'before the look').to.equal(0);
    await eventually('it has looked', () => one.dueCount > 0);
    expect(one.share(1)).to.equal(4);
  });

  it('send nothing beside a division that leaves them out', async () => {
    const all = await joinedThree(6);
    const [one, ...others] = all;
    one.underWay.set(1, one.share(1));
    // Its clock stood still as well, as that of a virtual machine may.
    await one.seenLater(-HANGS_MS);
    await lookAll(others);
    await one.look();
    expect(sharesOf(all)).to.deep.equal([0, 3, 3]);
    one.underWay.set(1, 0);
    await lookAll(all);
    expect(sharesOf(all)).to.deep.equal([2, 2, 2]);
  });

  it('go on without one that was seen in the future, because the clock was set back', async () => {
    const [dead, ...others] = await joinedThree(6);
    await dead.seenLater(3_600_000);
    await lookAll(others);
    expect(sharesOf(others)).to.deep.equal([3, 3]);
  });

  it('keep their shares when the clock is set back or forward for all of them', async () => {
    const all = await joinedThree(6);
    for (const ms of [3_600_000, -3_600_000]) {
      for (const one of all) await one.seenLater(ms);
      for (const one of all) {
        await one.look();
        expect(sharesOf(all)).to.deep.equal([2, 2, 2]);
      }
    }
  });

  it('do not wait for one that hangs while it looks, which can leave all the same', async () => {
    let isToHang = false;
    let hanging: Promise<void> | undefined;
    const goesOn = newDeferred<void>();
    const hangWithLock: KyselyPlugin = {
      transformQuery({ node }) {
        // The rows are read behind the lock.
        if (isToHang && node.kind === 'SelectQueryNode') hanging = goesOn.promise;
        return node;
      },
      transformResult: async ({ result }) => (await hanging, result),
    };
    const [hung, other] = [new Process(database, 1, 4, hangWithLock), new Process(database, 2, 4)];
    await hung.join();
    await other.join();
    await lookAll([hung, other]);
    isToHang = true;
    hung.pass(1_000);
    await eventually('it has the lock', () => hanging !== undefined);
    await hung.seenLater(-HANGS_MS);
    await other.look();
    await eventually('the other has the limit', async () => {
      await other.look();
      return other.share(1) === 4;
    });
    hung.pass(2_000);
    expect(hung.share(1)).to.equal(0);
    const left = hung.leave();
    while (hung.dueCount === 0) await new Promise(setImmediate);
    hung.pass(2_000);
    await left;
    goesOn.resolve();
  });
});
