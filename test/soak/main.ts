import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inheritedEnvironment } from '../../service/config/config';
import { ENGINES } from '../helpers/database/engines';
import type { ScenarioResult } from '../helpers/scenario';
import { MODELS, type ModelOnEngine, type SeedRange } from './models';

/** A process runs only so many scenarios, because its node grows with every mint. */
const SEEDS_OF_A_PROCESS = 100;
/** The end of a failed scenario's history says most, so only that is printed. */
const LAST_LINES = 200;
const HIGHEST_SEED = 1_000_000;
const PROCESSES = 2;
/** A folder in memory, if the machine has it. On a disk, scenarios wait for it. */
const MEMORY_FOLDER = '/dev/shm';

/** The results of all scenarios. */
class Tally {
  scenarios = 0;
  /** Options that run a failed scenario again. */
  readonly failed: string[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #startedAt = Date.now();

  constructor(
    readonly isReplay: boolean,
    readonly hasProfiles: boolean,
  ) {}

  add({ model, engine }: SeedRange, { seed, counts, violations, history }: ScenarioResult): void {
    this.scenarios++;
    for (const [what, times] of Object.entries(counts)) {
      const name = `${model}: ${what}`;
      this.#counts[name] = (this.#counts[name] ?? 0) + times;
    }
    if (this.isReplay) console.log(history.join('\n'));
    if (violations.length === 0) return;
    if (!this.isReplay) console.log(history.slice(-LAST_LINES).join('\n'));
    console.log(`${model}, seed ${seed} failed:\n  ${violations.join('\n  ')}`);
    const profiles = this.hasProfiles ? ' --profiles' : '';
    this.failed.push(`--model ${model} --engine ${engine} --seed ${seed}${profiles}`);
  }

  toString(): string {
    const seconds = (Date.now() - this.#startedAt) / 1_000;
    const counts = Object.entries(this.#counts).sort(([one], [other]) => (one < other ? -1 : 1));
    return [
      `${this.scenarios} scenarios in ${seconds.toFixed(0)} s, ${this.failed.length} failed`,
      ...counts.map(([what, times]) => `${String(times).padStart(9)}  ${what}`),
      ...this.failed.map((options) => `npm run soak -- ${options} runs it again`),
    ].join('\n');
  }
}

/** Runs scenarios in a process, one range after the other. */
async function runInProcess(ranges: readonly SeedRange[], tally: Tally): Promise<void> {
  const folder = existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir();
  const child = fork(join(__dirname, 'worker.ts'), {
    execArgv: ['--require', 'ts-node/register/transpile-only'],
    env: { ...inheritedEnvironment(), TMPDIR: folder },
  });
  child.on('message', ([range, result]: [SeedRange, ScenarioResult]) => tally.add(range, result));
  child.send(ranges.map((range) => ({ ...range, hasProfiles: tally.hasProfiles })));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0)
    throw new Error(`the process with the seeds from ${ranges[0]?.first} on ended with ${code}`);
}

/** Runs `seeds` scenarios of a model from `first` on, so many at a time. */
async function runSeeds(chosen: ModelOnEngine, first: number, seeds: number, tally: Tally): Promise<void> {
  let next = first;
  const end = first + seeds;
  const size = Math.min(SEEDS_OF_A_PROCESS, Math.ceil(seeds / PROCESSES));
  const work = async (): Promise<void> => {
    while (next < end) {
      const range = { ...chosen, first: next, count: Math.min(size, end - next) };
      next += range.count;
      await runInProcess([range], tally);
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, work));
}

/** Runs scenarios of each of these models for an equal part of the time, in each process. */
async function runFor(
  seconds: number,
  chosen: readonly ModelOnEngine[],
  first: number,
  tally: Tally,
): Promise<void> {
  const forMs = (seconds * 1_000) / chosen.length;
  const rangesFrom = (seed: number): SeedRange[] =>
    chosen.map((one) => ({ ...one, first: seed, count: HIGHEST_SEED, forMs }));
  const seeds = Array.from({ length: PROCESSES }, (_, process) => first + process * HIGHEST_SEED);
  await Promise.all(seeds.map((seed) => runInProcess(rangesFrom(seed), tally)));
}

/**
 * - `--seconds S` runs every model, or the one of `--model`, for S seconds in all.
 * - `--seeds N` runs N scenarios of a model, from a random seed or that of `--seed` on.
 * - `--seed N` runs one again, and prints its history.
 * - `--profiles` gives the nodes of mints, nodes and retractions random profiles of public nodes.
 */
async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const options = {
    model: text,
    engine: text,
    seeds: text,
    seed: text,
    seconds: text,
    profiles: { type: 'boolean' } as const,
  };
  const { model, engine, seeds, seed, seconds, profiles = false } = parseArgs({ options }).values;
  if (model !== undefined && !MODELS.some((one) => one.model === model))
    throw new Error(`--model is one of ${[...new Set(MODELS.map((one) => one.model))].join(', ')}`);
  if (engine !== undefined && !ENGINES.some((name) => name === engine))
    throw new Error(`--engine is one of ${ENGINES.join(', ')}`);
  const chosen = MODELS.filter(
    (one) => (model ?? one.model) === one.model && (engine ?? one.engine) === one.engine,
  );
  const [only] = chosen;
  if (only === undefined) throw new Error(`the model ${model} does not run on ${engine}`);
  const first = seed === undefined ? randomInt(HIGHEST_SEED) : Number(seed);
  const tally = new Tally(seed !== undefined && seeds === undefined && seconds === undefined, profiles);
  console.log(`seeds from ${first} on`);
  if (seconds !== undefined) await runFor(Number(seconds), chosen, first, tally);
  else await runSeeds(only, first, tally.isReplay ? 1 : Number(seeds ?? SEEDS_OF_A_PROCESS), tally);
  console.log(tally.toString());
  if (tally.failed.length > 0) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
